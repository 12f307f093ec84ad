//go:build soak

package soak

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/leaks"
	"liken.sh/csicommon/csitest/process"
)

// mostGrown is how much more memory the plugin may have after a calm round than before. The
// first of its life makes what is kept: connections, tables, the pages of code that were used.
const mostGrown = 16 << 20

// check wants everything to be as the answers and the writes of pods say, once the plugin has
// had time to do what it could not. What copies use is measured once a minute at most, so it
// is told rightly only after as long, for which isPatient is.
func (s *soak) check(isPatient bool) {
	s.API.ForgetRequests()
	dir, err := os.Open(s.disk)
	if err != nil {
		s.T.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil { // Sizes change when files are written out.
		s.T.Fatal(err)
	}
	if s.canary.look() != s.canary.seal {
		s.T.Errorf("something outside of the store was touched: %s", s.canary.dir)
	}
	for _, v := range s.volumes {
		v.check()
		if s.T.Failed() {
			return
		}
	}
	s.await("the trash to be empty", func() bool { return len(list(s.trash())) == 0 })
	s.checkStore()
	s.checkFigures(isPatient)
	s.AwaitAnswer("/readyz", http.StatusOK, "ok")
	s.AwaitAnswer("/healthz", http.StatusOK, "ok")
}

// check has the holder publish again, which is what a kubelet does that was started again:
// then a hold is there that could not be written with a full disk.
func (v *volume) check() {
	v.look()
	v.verify()
	v.publishAgain()
	v.wantHealth()
	copied := filepath.Join(v.s.Store, "copies", v.handle)
	if v.holder == nobody && len(v.exists) == 0 {
		v.s.await("the copy of "+v.handle+" to be removed", func() bool { return !exists(copied) })
		v.copied, v.mark, v.stirred, v.tree = false, "", false, tree{} // What comes next is condemned too.
	}
	if v.copied && !v.condemned && !exists(copied) {
		v.wrong("its copy is gone")
	}
	v.verify()
}

func (v *volume) publishAgain() {
	if v.holder != nobody {
		v.publish(v.holder, v.readOnly)
	} else {
		v.unpublish(podsPerVolume) // Has the plugin look at it.
	}
}

// wantHealth wants nothing to be wrong, but that somebody took the mount away.
func (v *volume) wantHealth() {
	var reasons []string
	hold := filepath.Join(v.s.Store, "holds", v.handle)
	v.s.await("the health of "+v.handle+" to be told rightly", func() bool {
		var code codes.Code
		reasons, code = v.callHealth(process.Patience)
		want := "[]"
		if v.holder == nobody && exists(hold) {
			want = "[TargetNotMounted]"
		}
		v.note("health: %v %v, want %s", code, reasons, want)
		return code == codes.OK && fmt.Sprint(reasons) == want
	})
	if v.holder == nobody && exists(hold) && !v.stale {
		v.wrong("it has a hold, and no pod: %s", hold)
	}
	if v.holder != nobody {
		content, err := os.ReadFile(hold)
		if err != nil || !bytes.Contains(content, []byte(`"`+v.target(v.holder)+`"`)) {
			v.wrong("pod %d has it, and the hold says %q: %v", v.holder, content, err)
		}
	}
}

func (s *soak) trash() string { return filepath.Join(s.Store, "trash") }

// checkStore wants nothing in the store but what belongs there.
func (s *soak) checkStore() {
	known := make(map[string]bool)
	for _, v := range s.volumes {
		known[v.handle] = true
	}
	for _, dir := range []string{"copies", "holds"} {
		for _, name := range list(filepath.Join(s.Store, dir)) {
			if !known[name] {
				s.T.Errorf("%s is left in %s", name, dir)
			}
		}
	}
	for _, name := range list(s.Store) {
		if s.plain[name] == 0 {
			s.T.Errorf("%s is left in the store", name)
		}
	}
	if left := list(s.tmp); len(left) > 0 {
		s.T.Errorf("temporary files are left: %q", left)
	}
}

// checkFigures compares the metrics with the disk and the mount table.
func (s *soak) checkFigures(withBytes bool) {
	var got, want map[string]float64
	defer func() {
		if s.T.Failed() {
			s.say("the figures are %v, want %v", got, want)
		}
	}()
	s.await("the figures to be right", func() bool {
		got, want = make(map[string]float64), make(map[string]float64)
		copies := list(filepath.Join(s.Store, "copies"))
		want["copies"], want["held"] = float64(len(copies)), float64(len(s.shown()))
		families := s.Scrape()
		for name, metric := range map[string]string{"copies": "per_node_copies", "held": "per_node_held_copies"} {
			for _, series := range families[metric].GetMetric() { // There is none before the copies are listed.
				got[name] = series.GetGauge().GetValue()
			}
		}
		if !withBytes {
			return maps.Equal(got, want)
		}
		for _, handle := range copies {
			want[handle] = size(filepath.Join(s.Store, "copies", handle))
		}
		for _, series := range families["per_node_copy_bytes"].GetMetric() {
			got[series.GetLabel()[0].GetValue()] = series.GetGauge().GetValue()
		}
		return maps.Equal(got, want)
	})
}

// settled waits until the plugin has nothing to do, and looks at all that it has.
func (s *soak) settled() leaks.Snapshot {
	s.T.Helper()
	s.Figure("per_node_copies")
	s.await("a sweep", func() bool { return s.Figure("per_node_last_sweep_timestamp_seconds") > 0 })
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return leaks.Look(s.T, s.scope())
}

func (s *soak) scope() leaks.Scope {
	return leaks.Scope{
		Process: s.Plugin.Pid(), Family: os.Getpid(), Namespace: s.Plugin.Pid(),
		Directories: []string{s.tmp, s.Store, filepath.Join(s.KubeletDir, "plugins"), filepath.Join(s.KubeletDir, "plugins_registry")},
	}
}

// clear takes all volumes away.
func (s *soak) clear() {
	s.T.Helper()
	for _, v := range s.volumes {
		for i := range podsPerVolume {
			v.unpublish(i)
		}
		v.unmade(v.names[:]...)
	}
	for _, v := range s.volumes {
		v.check()
	}
	if s.T.Failed() {
		return
	}
	if shown := s.shown(); len(shown) > 0 {
		s.T.Errorf("mounts are left: %v", shown)
	}
	s.await("the trash to be empty", func() bool { return len(list(s.trash())) == 0 })
}

// wantNoMore wants the plugin to have no more than before, without a volume then and now.
func (s *soak) wantNoMore(before leaks.Snapshot) {
	s.T.Helper()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	leaks.Await(s.T, before, s.scope())
	after := leaks.Look(s.T, s.scope())
	s.grown = max(s.grown, after.Anonymous-before.Anonymous)
	if after.Anonymous > before.Anonymous+mostGrown && !process.Raced {
		s.T.Errorf("the plugin has %d bytes of memory, and had %d", after.Anonymous, before.Anonymous)
	}
}

// inStore is what a store without a volume has.
func (s *soak) inStore() map[string]int {
	found := make(map[string]int)
	for _, name := range list(s.Store) {
		found[name]++
	}
	return found
}

func list(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
