// Package build tells which build this is. It must never be set by anything but
// the linker and the Go toolchain. (The one variable is what the linker needs.)
package build

import (
	"runtime"
	"runtime/debug"
)

// version is set by the linker for a release: -X liken.sh/csicommon/build.version=v1.2.3.
var version = "devel"

// Version is the release, "devel" for a build from a checkout.
func Version() string { return version }

// GoVersion is the toolchain's.
func GoVersion() string { return runtime.Version() }

// Revision is the commit built from, "unknown" where the toolchain did not
// record it.
func Revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}
