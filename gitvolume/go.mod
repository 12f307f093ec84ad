module liken.sh/gitvolume

go 1.26.0

require liken.sh/csicommon v0.0.0

require (
	github.com/libgit2/git2go/v34 v34.0.0
	github.com/moby/sys/mountinfo v0.7.3
	github.com/pjbgf/sha1cd v0.7.0
	github.com/rjeczalik/notify v0.9.3
	golang.org/x/crypto v0.58.0
	golang.org/x/sys v0.50.0
	k8s.io/apimachinery v0.37.2
	pgregory.net/rapid v1.3.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.3 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // indirect
)

replace liken.sh/csicommon => ../csicommon
