//go:build soak && !race

package soak

const raced = false
