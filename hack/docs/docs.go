// Package docs holds the tests of what the repository's documentation says: that
// links lead somewhere, that the manifests a reader copies are valid and whole, that no page
// is out of reach, and that what pages name is in the code.
//
// It must never hold anything but tests.
package docs
