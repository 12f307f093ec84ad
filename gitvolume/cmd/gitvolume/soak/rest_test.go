//go:build soak

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// comeToRest waits until the plugin has done all that there is to do, without another
// fault, has the colleagues merge what is to be merged, and looks at all of it.
func (r *torture) comeToRest() {
	r.settles("all pods to have their volumes", r.arePublished)
	r.settles("all to arrive", r.areQuiet)
	r.say("all has arrived")
	r.compareRemotes("with side branches")
	r.settles("the side branches to heal", r.heal)
	r.say("all is healed")
	r.settles("all to arrive", r.areQuiet)
	r.compareRemotes("after the merges")
	r.settles("the readers to follow", r.doReadersFollow)
	r.settles("all volumes to be well", r.areWell)
	for _, w := range r.writers {
		w.compare(w.target(), "at rest")
	}
}

func (r *torture) arePublished() string {
	for _, w := range r.writers {
		if _, err := os.Lstat(filepath.Join(w.target(), sharePath(0))); err != nil {
			return fmt.Sprintf("%s: %v", w.volume.Handle, err)
		}
	}
	for _, reader := range r.readers {
		if _, err := os.Lstat(filepath.Join(reader.target(), alwaysPath)); err != nil {
			return fmt.Sprintf("%s: %v", reader.volume.Handle, err)
		}
	}
	return ""
}

// areQuiet wants the volumes to say that nothing is left to commit or to push, and that to
// be so.
func (r *torture) areQuiet() string {
	families := r.plugin.Scrape()
	for _, w := range r.writers {
		for _, name := range []string{"git_csi_pending_paths", "git_csi_unpushed_commits"} {
			value, found := ofClaim(families, name, w.volume.Handle)
			if !found || value != 0 {
				return fmt.Sprintf("%s of %s is %v, exposed: %t", name, w.volume.Handle, value, found)
			}
		}
		// What others pushed since its last push, a tree takes at the next start of a pod.
		if differs := r.differs(w.seat, w.ref(), 100); differs != "" {
			return fmt.Sprintf("%s is not what %s was of late: %s", w.volume.Handle, w.ref(), differs)
		}
	}
	return ""
}

// ref is where the volume's commits go now.
func (w *writer) ref() string {
	side := w.branch + "." + w.volume.Handle
	if w.repository.bare.Tip("refs/heads/"+side) != "" {
		return side
	}
	return w.branch
}

// heal has the side branches be merged, and something be written, on which a volume sees it.
func (r *torture) heal() string {
	missing := ""
	for _, c := range r.colleagues {
		if sides := c.sides(); len(sides) > 0 {
			missing = fmt.Sprintf("there is still %q", sides)
			c.mergeAll()
		}
	}
	families := r.plugin.Scrape()
	for _, w := range r.writers {
		if value, _ := ofClaim(families, "git_csi_diverged", w.volume.Handle); value != 0 {
			missing = w.volume.Handle + " is diverged"
			w.application.create(w.target())
		}
	}
	if missing != "" {
		time.Sleep(8 * time.Second)
	}
	return missing
}

// doReadersFollow wants each read-only tree to be what its branch is.
func (r *torture) doReadersFollow() string {
	for _, reader := range r.readers {
		if differs := r.differs(reader.seat, reader.branch, 1); differs != "" {
			return fmt.Sprintf("%s differs from %s: %s", reader.volume.Handle, reader.branch, differs)
		}
	}
	return ""
}

// areWell wants each volume to say what is true: nothing is wrong with it.
func (r *torture) areWell() string {
	families := r.plugin.Scrape()
	want := map[string]float64{"git_csi_armed": 1, "git_csi_diverged": 0, "git_csi_watch_degraded": 0, "git_csi_skipped_files": 0, "git_csi_volume_abnormal": 0}
	for _, w := range r.writers {
		for name, want := range want {
			if got, found := ofClaim(families, name, w.volume.Handle); !found || got != want {
				return fmt.Sprintf("%s of %s is %v, want %v; exposed: %t", name, w.volume.Handle, got, want, found)
			}
		}
	}
	for _, reader := range r.readers {
		if got, found := ofClaim(families, "git_csi_volume_abnormal", reader.volume.Handle); !found || got != 0 {
			return fmt.Sprintf("%s is abnormal: %v; exposed: %t", reader.volume.Handle, got, found)
		}
	}
	return ""
}

// next has one more pod have each volume, whose tree is then what its branch is.
func (r *torture) next() {
	for _, w := range r.writers {
		if !w.publish() {
			continue
		}
		r.settles("a tree to follow its branch", func() string { return r.differs(w.seat, w.branch, 1) })
		w.compare(w.target(), "as the last pod starts")
		_ = w.unpublish() && w.unstage() // What fails is found.
	}
}

// ofClaim is the value of the series of a claim.
func ofClaim(families map[string]*dto.MetricFamily, name, claim string) (value float64, found bool) {
	for _, series := range families[name].GetMetric() {
		for _, label := range series.GetLabel() {
			if label.GetName() == "claim" && label.GetValue() == claim {
				return series.GetGauge().GetValue() + series.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}
