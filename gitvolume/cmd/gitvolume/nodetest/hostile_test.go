package nodetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
)

// bait is what no pod and no repository may have the plugin touch: a directory beside the
// volume, of which every look at its files is seen, and a command, of which every run is.
type bait struct {
	t       *testing.T
	dir     string
	ran     string // It is there once the command ran.
	command string
	watch   int
}

const secretOfTheNode = "secret of the node"

func newBait(t *testing.T) *bait {
	t.Helper()
	dir := t.TempDir()
	b := &bait{t: t, dir: filepath.Join(dir, "outside"), ran: filepath.Join(dir, "ran"), command: filepath.Join(dir, "command")}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, b.dir, "file", secretOfTheNode)
	write(t, b.dir, ".gitignore", "*\n")
	if err := os.WriteFile(b.command, []byte("#!/bin/sh\necho \"$0 $*\" >>'"+b.ran+"'\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.watch, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(b.watch) })
	for _, path := range []string{b.dir, filepath.Join(b.dir, "file"), filepath.Join(b.dir, ".gitignore")} {
		if _, err := unix.InotifyAddWatch(b.watch, path, unix.IN_ALL_EVENTS); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// untouched expects that no file of the bait was opened, that nothing of it was changed and
// that no command ran. That its directory was listed is what a watch can be led to (see
// package watch), of which nothing comes: a name is looked for in the tree alone.
func (b *bait) untouched() {
	b.t.Helper()
	buffer := make([]byte, 1<<20)
	n, err := unix.Read(b.watch, buffer)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		b.t.Fatal(err)
	}
	const listed = unix.IN_OPEN | unix.IN_ACCESS | unix.IN_CLOSE_NOWRITE
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		mask, length := binary.NativeEndian.Uint32(buffer[at+4:]), int(binary.NativeEndian.Uint32(buffer[at+12:]))
		if name := strings.TrimRight(string(buffer[at+unix.SizeofInotifyEvent:][:length]), "\x00"); mask&unix.IN_ISDIR == 0 || mask&unix.IN_ALL_EVENTS&^listed != 0 {
			b.t.Errorf("outside of the tree there was the event %#x of %q", mask, name)
		}
		at += unix.SizeofInotifyEvent + length
	}
	if said, err := os.ReadFile(b.ran); err == nil {
		b.t.Errorf("a command of the pod's ran: %s", said)
	}
}

// config is of a repository that runs the command wherever git lets a configuration do so.
func (b *bait) config() string {
	return fmt.Sprintf("[core]\n\tfsmonitor = %[1]s\n\thooksPath = %[2]s\n\tsshCommand = %[1]s\n\tpager = %[1]s\n\teditor = %[1]s\n"+
		"[filter \"evil\"]\n\tclean = %[1]s\n\tsmudge = %[1]s\n\tprocess = %[1]s\n[diff \"evil\"]\n\tcommand = %[1]s\n\ttextconv = %[1]s\n"+
		"[merge \"evil\"]\n\tdriver = %[1]s\n[credential]\n\thelper = !%[1]s\n[protocol]\n\tallow = always\n[remote \"origin\"]\n\turl = ext::%[1]s\n"+
		"[include]\n\tpath = %[3]s\n", b.command, filepath.Dir(b.command), filepath.Join(b.dir, "file"))
}

// plant writes everything into a tree by which git could be led to run something or to look
// elsewhere.
func (b *bait) plant(tree string) {
	b.t.Helper()
	hooks := []string{"pre-commit", "post-commit", "pre-push", "post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"}
	for _, repository := range []string{".git", "sub/.git", ".", "bare.git"} {
		for _, dir := range []string{"hooks", "objects/info", "objects/pack", "refs/heads", "info"} {
			if err := os.MkdirAll(filepath.Join(tree, repository, dir), 0o755); err != nil {
				b.t.Fatal(err)
			}
		}
		write(b.t, tree, filepath.Join(repository, "HEAD"), "ref: refs/heads/main\n")
		write(b.t, tree, filepath.Join(repository, "config"), b.config())
		write(b.t, tree, filepath.Join(repository, "objects/info/alternates"), b.dir+"\n")
		write(b.t, tree, filepath.Join(repository, "info/attributes"), "* filter=evil diff=evil merge=evil\n")
		for _, hook := range hooks {
			if err := os.Symlink(b.command, filepath.Join(tree, repository, "hooks", hook)); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	write(b.t, tree, ".gitattributes", "* filter=evil diff=evil merge=evil text eol=crlf ident\n")
	write(b.t, tree, ".gitmodules", "[submodule \"x\"]\n\tpath = sub\n\turl = ext::"+b.command+"\n\tupdate = !"+b.command+"\n")
	write(b.t, tree, ".gitconfig", b.config())
	write(b.t, tree, ".lfsconfig", "[lfs]\n\turl = ext::"+b.command+"\n")
	if err := os.Symlink(b.dir, filepath.Join(tree, "link")); err != nil {
		b.t.Fatal(err)
	}
	for name, mode := range map[string]uint32{"fifo": unix.S_IFIFO, "socket": unix.S_IFSOCK, "device": unix.S_IFCHR} {
		// Where devices may not be made, there are none to meet.
		if err := unix.Mknod(filepath.Join(tree, name), mode|0o666, int(unix.Mkdev(1, 5))); err != nil && name != "device" {
			b.t.Fatal(err)
		}
	}
}

// swap has a directory of the tree be a link to the bait by turns, and be moved about, until
// the end. It follows no link itself.
func (b *bait) swap(tree string, random *rand.Rand, end <-chan struct{}) {
	at := func(name string) string { return filepath.Join(tree, name) }
	root, err := os.OpenRoot(tree)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer root.Close()
	_ = root.Symlink(b.dir, "swapped")
	for round := 0; ; round++ {
		select {
		case <-end:
			return
		default:
		}
		_ = root.MkdirAll("dir/below", 0o755)
		_ = root.WriteFile("dir/file", []byte(fmt.Sprint("of the pod ", round)), 0o644)
		_ = root.WriteFile("dir/below/file", []byte("of the pod"), 0o644)
		switch random.IntN(4) {
		case 0:
			_ = unix.Renameat2(unix.AT_FDCWD, at("dir"), unix.AT_FDCWD, at("swapped"), unix.RENAME_EXCHANGE)
		case 1:
			_ = root.Rename("dir/below", fmt.Sprint("below-", random.IntN(5)))
			_ = root.Symlink(b.dir, "dir/below")
		case 2:
			_ = root.Rename("dir/file", fmt.Sprint("moved-", random.IntN(5)))
		case 3:
			_ = root.Remove("dir/file")
			_ = root.Symlink(filepath.Join(b.dir, "file"), "dir/file")
		}
		time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
	}
}

// deep makes directories below each other that no path reaches.
func deep(t *testing.T, tree string) {
	t.Helper()
	dir, err := unix.Open(tree, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; err == nil && i < 30; i++ {
		name := strings.Repeat(string(rune('a'+i%26)), 200)
		if err = unix.Mkdirat(dir, name, 0o755); err != nil {
			break
		}
		var next int
		next, err = unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		_ = unix.Close(dir)
		dir = next
	}
	if err == nil {
		var file int
		if file, err = unix.Openat(dir, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644); err == nil {
			err = unix.Close(file)
		}
		_ = unix.Close(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hostileNode is a node with a volume of a hostile pod, and one of a calm pod, both of which
// commit at once.
func hostileNode(t *testing.T) (n *node, hostile, calm kubelet.Volume) {
	t.Helper()
	n = newNode(t)
	n.remote.Grow("main", "a", "1")
	n.remote.Grow("hostile", "a", "1")
	volume := func(handle, ref string) kubelet.Volume {
		return kubelet.Volume{
			PV: handle, Handle: handle, AccessMode: corev1.ReadWriteOncePod,
			Attributes: map[string]string{"url": "file://" + n.remote.Dir, "ref": ref},
		}
	}
	hostile, calm = volume("hostile", "hostile"), volume("calm", "main")
	n.Start()
	n.MustPublish(hostile, 1)
	n.MustPublish(calm, 2)
	n.Plugin.Stop()
	n.armed("hostile", "calm")
	n.Start()
	n.MustPublish(hostile, 1)
	n.MustPublish(calm, 2)
	return n, hostile, calm
}

// A pod writes a .git of its own with hooks, filters and a configuration that run commands,
// repositories without one, links out of its tree, devices and what no path reaches, and
// swaps directories for links under the driver's hands: no file outside its tree is read or
// changed, none of its commands runs, what it may write arrives, and another pod's writes
// arrive meanwhile.
func TestAHostilePod(t *testing.T) {
	t.Parallel()
	n, hostile, calm := hostileNode(t)
	target, other := n.Target(hostile.PV, 1), n.Target(calm.PV, 2)
	b := newBait(t)
	b.plant(target)
	deep(t, target)
	var bytes []string
	for c := 1; c < 256; c++ {
		if c != '/' {
			name := "n" + string([]byte{byte(c)})
			bytes = append(bytes, name)
			write(t, target, name, "x")
		}
	}
	end := make(chan struct{})
	var swapping sync.WaitGroup
	for i := range 2 {
		swapping.Go(func() { b.swap(target, rand.New(rand.NewPCG(uint64(i), 1)), end) })
	}
	slowest := time.Duration(0)
	for i := range 10 {
		start := time.Now()
		write(t, other, "calm", fmt.Sprint(i))
		process.Await(t, "the calm pod's write to arrive", func() bool { return n.has("calm", fmt.Sprint(i)) })
		slowest = max(slowest, time.Since(start))
	}
	t.Logf("the calm pod's writes arrived within %s", slowest)
	close(end)
	swapping.Wait()
	write(t, target, "end", "1")
	process.Await(t, "the hostile pod's last write to arrive", func() bool {
		got, err := n.remote.TryGit("cat-file", "blob", "hostile:end")
		return err == nil && got == "1"
	})
	b.untouched()

	arrived := strings.Split(strings.TrimSuffix(n.remote.Git("ls-tree", "-r", "-z", "--name-only", "hostile"), "\x00"), "\x00")
	there := map[string]bool{}
	for _, path := range arrived {
		there[path] = true
		if strings.Contains("/"+path+"/", "/.git/") || strings.HasPrefix(path, "link/") || path == "fifo" || path == "device" || path == "socket" {
			t.Errorf("%q was committed", path)
		}
	}
	for _, name := range append(bytes, ".gitattributes", "config", "bare.git/HEAD", "link") {
		if !there[name] {
			t.Errorf("%q did not arrive", name)
		}
	}
	for id := range strings.SplitSeq(n.remote.Git("rev-list", "--objects", "--no-object-names", "hostile"), "\n") {
		if content, err := n.remote.TryGit("cat-file", "blob", id); err == nil && content == secretOfTheNode {
			t.Errorf("the blob %s has what is outside of the tree", id)
		}
	}
	n.remote.Git("fsck")
	n.MustUnpublish(hostile, 1)
	n.MustUnpublish(calm, 2)
	b.untouched()
}

// What a pod committed comes to other nodes as upstream's: there too nothing of it runs and
// nothing outside is written, when it is checked out and when the pod there writes beside it.
func TestAHostileRepository(t *testing.T) {
	t.Parallel()
	n, hostile, calm := hostileNode(t)
	b := newBait(t)
	target := n.Target(hostile.PV, 1)
	n.remote.Put("hostile", map[string]string{
		".gitattributes": "* filter=evil diff=evil merge=evil text eol=crlf ident export-subst\n",
		".gitconfig":     b.config(), "config": b.config(), "HEAD": "ref: refs/heads/main\n", "hooks/post-checkout": "#!/bin/sh\n" + b.command + "\n",
		"objects/info/alternates": b.dir + "\n", "both": "upstream's\r\n$Id$\n",
	})
	write(t, target, "own", "1")
	process.Await(t, "the pod's write to arrive", func() bool {
		got, err := n.remote.TryGit("cat-file", "blob", "hostile:own")
		return err == nil && got == "1"
	})
	shows(t, target, "both", "upstream's\r\n$Id$\n")
	// A link where the pod has a directory, and out of the tree.
	n.remote.Import(fmt.Sprintf("commit refs/heads/hostile\ncommitter x <x@x> 1700000000 +0000\ndata 1\nx\nfrom refs/heads/hostile^0\nM 120000 inline away\ndata %d\n%s\n\n", len(b.dir), b.dir))
	write(t, target, "own", "2")
	process.Await(t, "the pod's write to arrive", func() bool {
		got, err := n.remote.TryGit("cat-file", "blob", "hostile:own")
		return err == nil && got == "2"
	})
	process.Await(t, "the link to come", func() bool {
		to, err := os.Readlink(filepath.Join(target, "away"))
		return err == nil && to == b.dir
	})
	// Upstream puts a directory where the link was, with a file of a name that is outside too.
	n.remote.Import("commit refs/heads/hostile\ncommitter x <x@x> 1700000001 +0000\ndata 1\nx\nfrom refs/heads/hostile^0\nD away\nM 100644 inline away/file\ndata 5\nlies.\n\n")
	write(t, target, "own", "3")
	process.Await(t, "the directory to come", func() bool {
		info, err := os.Lstat(filepath.Join(target, "away")) // No look through the link is the test's own.
		return err == nil && info.IsDir()
	})
	shows(t, target, "away/file", "lies.")
	write(t, n.Target(calm.PV, 2), "calm", "1")
	process.Await(t, "the calm pod's write to arrive", func() bool { return n.has("calm", "1") })
	n.MustUnpublish(hostile, 1)
	n.MustUnpublish(calm, 2)
	b.untouched()
	n.remote.Git("fsck", "--strict")
}
