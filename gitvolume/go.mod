module liken.sh/gitvolume

go 1.26.0

require liken.sh/csicommon v0.0.0

require (
	github.com/libgit2/git2go/v34 v34.0.0
	golang.org/x/crypto v0.59.0
	golang.org/x/sys v0.50.0
	pgregory.net/rapid v1.3.0
)

require github.com/moby/sys/mountinfo v0.7.3 // indirect

replace liken.sh/csicommon => ../csicommon
