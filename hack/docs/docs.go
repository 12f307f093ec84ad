// Package docs holds the tests of what the repository's documentation says: that
// links lead somewhere, and that the manifests a reader copies are valid and whole.
//
// It must never hold anything but tests.
package docs
