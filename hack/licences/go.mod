// What is linked into the drivers, and under which licences. A module of its own, since
// an image is built with it too, from the few files that are here.
module liken.sh/hack/licences

go 1.26.0

require github.com/google/licensecheck v0.3.1
