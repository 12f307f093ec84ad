// Package docs holds the tests of what the repository's documentation says: that
// links lead somewhere, and that a manifest a reader copies is one.
//
// It must never hold anything but tests.
package docs
