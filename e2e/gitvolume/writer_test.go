//go:build e2e

package gitvolume

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// The tests of this file have pods write their volumes.

// TestUsers has a pod of an ordinary user write, with a group of the volume's and without,
// and go on with the same files on the other node.
func TestUsers(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	class := s.Class(soon())
	user, group := int64(1000), int64(2000)
	rows := []struct {
		name    string // Of pod and repository.
		fsGroup *int64
		// made is owner, group and mode of what the user makes, a file and a directory, and
		// moved on the other node, where the group is given all there is.
		made, moved string
		// theirs is what becomes of a write to a file of the repository.
		theirs string
	}{
		{"private-user", nil, "1000 1000 644\n1000 1000 755", "1000 1000 644\n1000 1000 755", "refused"},
		{"private-group", &group, "1000 2000 644\n1000 2000 2755", "1000 2000 664\n1000 2000 2775", "written"},
	}
	claims := map[string]string{}
	start := func(node string) {
		for _, row := range rows {
			s.Start(row.name, cluster.PodSpec(node, cluster.Claim(claims[row.name])), func(spec *corev1.PodSpec) {
				spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user, RunAsGroup: &user, FSGroup: row.fsGroup}
			})
		}
		for _, row := range rows {
			s.Runs(row.name, cluster.Patient)
		}
	}
	for _, row := range rows {
		s.Commit(t, row.name, "main", "theirs/file", "one")
		claims[row.name] = s.writeable(row.name, class)
	}
	start(kube.Nodes[0])
	for _, row := range rows {
		s.Exec(row.name, "echo mine > /data/mine && mkdir /data/made && echo below > /data/made/below")
		if got := s.Exec(row.name, "stat -c '%u %g %a' /data/mine /data/made"); got != row.made {
			t.Errorf("what %s made belongs to %q, want %q", row.name, got, row.made)
		}
		if got := s.Exec(row.name, "(echo two > /data/theirs/file) 2>/dev/null && echo written || echo refused"); got != row.theirs {
			t.Errorf("a write of %s to what it was given was %s, want %s", row.name, got, row.theirs)
		}
	}
	for _, row := range rows {
		s.has(row.name, "main", "made/below", "below")
		s.bothTell(row.name, claims[row.name], "GitVolumePushed", "to main")
		// The group is not the application's doing.
		if record := s.record(row.name); strings.Contains(record, `"theirs`) || strings.Contains(record, `"."`) {
			t.Errorf("the record of %s is\n%s", row.name, record)
		}
	}
	s.has("private-group", "main", "theirs/file", "two")

	for _, row := range rows {
		s.Delete("pod", row.name)
	}
	start(kube.Nodes[1])
	for _, row := range rows {
		if got := s.Exec(row.name, "stat -c '%u %g %a' /data/mine /data/made"); got != row.moved {
			t.Errorf("on the other node what %s made belongs to %q, want %q", row.name, got, row.moved)
		}
		s.Exec(row.name, "echo more >> /data/made/below")
	}
	for _, row := range rows {
		s.has(row.name, "main", "made/below", "below\nmore")
	}
}

// record is that of modes and owners that the repository has of the branch main.
func (s *space) record(repository string) string {
	s.T.Helper()
	text, err := s.TryGit(repository, "show refs/git-csi/metadata:refs%2Fheads%2Fmain")
	if err != nil {
		s.T.Logf("%s has no record: %v", repository, err)
	}
	return text
}

// TestMove has pods end before what they wrote was committed, and begin on the other node,
// where all of it is, and back.
func TestMove(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	s.Commit(t, "private", "main", "theirs", "one")
	before := s.Git(t, "private", "rev-parse main")
	claim := s.writeable("private", s.Class(onStop()))
	const list = `cd /data && find . -exec stat -c '%n %F %a %u %g' {} + | sort`
	s.Start("first", cluster.PodSpec(kube.Nodes[0], cluster.Claim(claim)))
	s.Runs("first", cluster.Patient)
	s.Exec("first", `cd /data
mkdir -p spool/empty hidden
chmod 1777 spool/empty
echo key > hidden/key
chmod 600 hidden/key
chmod 750 hidden
chown -R 1000:2000 hidden
printf '#!/bin/sh\necho ran\n' > run
chmod 4755 run
chmod 640 theirs
ln -s run link
ln -s /nowhere/else dangling
chown -h 1000:2000 link`)
	want := s.Exec("first", list)
	if now := s.Git(t, "private", "rev-parse main"); now != before {
		t.Errorf("it was committed before the pod ended: %s", now)
	}
	s.Delete("pod", "first")
	s.has("private", "main", "hidden/key", "key")
	s.tells("persistentvolumeclaim", claim, "GitVolumePushed", "to main")

	s.Start("second", cluster.PodSpec(kube.Nodes[1], cluster.Claim(claim)))
	s.Runs("second", cluster.Patient)
	if got := s.Exec("second", list); got != want {
		t.Errorf("on the other node there is\n%s\nwant\n%s", got, want)
	}
	if got := s.Exec("second", "cat /data/hidden/key; /data/link; readlink /data/dangling"); got != "key\nran\n/nowhere/else" {
		t.Errorf("on the other node the files are %q", got)
	}
	s.Exec("second", "rm -r /data/hidden; rmdir /data/spool/empty; chmod 600 /data/run; mkdir /data/other; chown 7:8 /data/other")
	want = s.Exec("second", list)
	s.Delete("pod", "second")

	s.Start("third", cluster.PodSpec(kube.Nodes[0], cluster.Claim(claim)))
	s.Runs("third", cluster.Patient)
	if got := s.Exec("third", list); got != want {
		t.Errorf("back on the first node there is\n%s\nwant\n%s", got, want)
	}
}

// TestDivergedMoves has a volume that a conflict took to its side branch go on there on the
// other node, and come back once that was merged.
func TestDivergedMoves(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	s.Commit(t, "private", "main", "file", "one")
	claim := s.writeable("private", s.Class(soon()))
	side := sideOf(claim)
	s.Start("first", cluster.PodSpec(kube.Nodes[0], cluster.Claim(claim)))
	s.Runs("first", cluster.Patient)
	s.Commit(t, "private", "main", "file", "theirs")
	s.Exec("first", "echo ours > /data/file; mkdir -m 700 /data/closed")
	s.bothTell("first", claim, "GitVolumeDiverged", side)
	s.has("private", side, "file", "ours")
	s.has("private", "main", "file", "theirs")
	s.Delete("pod", "first")

	s.Start("second", cluster.PodSpec(kube.Nodes[1], cluster.Claim(claim)))
	s.Runs("second", cluster.Patient)
	s.Reads("second", "/data/file", "ours")
	if got := s.Exec("second", "stat -c %a /data/closed"); got != "700" {
		t.Errorf("the directory has the mode %s", got)
	}
	s.tells("pod", "second", "GitVolumeDiverged", side)
	s.HealthBecomes("second", "data Degraded Diverged")
	s.Exec("second", "echo more > /data/more")
	s.has("private", side, "more", "more")
	s.hasNot("private", "main", "more")

	s.Merge(t, "private", side, "main")
	s.Exec("second", "echo after > /data/after")
	s.bothTell("second", claim, "GitVolumeHealed", side)
	s.has("private", "main", "after", "after")
	s.has("private", "main", "file", "ours")
	s.branches("private", "main")
	s.HealthBecomes("second")
}

// TestMistakesOfWriters reach the person who looks at the pod or the claim.
func TestMistakesOfWriters(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	wrong := s.TokenSecret()
	wrong["token"] = "guessed"
	s.secret("wrong", wrong)
	s.Commit(t, "private", "main", "file", "one")
	class := s.Class(soon())
	node := kube.Nodes[0]
	with := func(change func(source *corev1.CSIPersistentVolumeSource)) string {
		return s.writeable("private", class, func(volume *corev1.PersistentVolume) { change(volume.Spec.CSI) })
	}
	holder := s.writeable("private", class)
	s.Start("holder", cluster.PodSpec(node, cluster.Claim(holder)))
	s.Runs("holder", cluster.Patient)

	other := &corev1.SecretReference{Namespace: s.Name, Name: "wrong"}
	rows := []struct{ pod, claim, event, words string }{
		{"same-claim", holder, "FailedScheduling", "ReadWriteOncePod"},
		{"same-handle", with(func(source *corev1.CSIPersistentVolumeSource) { source.VolumeHandle = holder }), "FailedMount", "already in use by another pod"},
		{"depth", with(func(source *corev1.CSIPersistentVolumeSource) { source.VolumeAttributes["depth"] = "1" }), "FailedMount", "depth"},
		{"ref", with(func(source *corev1.CSIPersistentVolumeSource) { source.VolumeAttributes["ref"] = "nothing" }), "GitVolumeFetchFailed", `"refs/heads/nothing"; there are "main"`},
		{"secrets", with(func(source *corev1.CSIPersistentVolumeSource) { source.NodePublishSecretRef = other }), "GitVolumeRefused", "nodePublishSecretRef"},
		{"guesses", with(func(source *corev1.CSIPersistentVolumeSource) {
			source.NodeStageSecretRef, source.NodePublishSecretRef = other, other
		}), "FailedMount", "the remote refuses the credential"},
	}
	for _, row := range rows {
		s.Start(row.pod, cluster.PodSpec(node, cluster.Claim(row.claim)))
	}

	// A push that a hook refuses, meanwhile.
	s.Refuse(t, "private", "nobody writes on a Sunday")
	s.Exec("holder", "echo two > /data/file")
	s.bothTell("holder", holder, "GitVolumePushFailed", "nobody writes on a Sunday")
	s.Accept(t, "private")
	s.has("private", "main", "file", "two")
	s.bothTell("holder", holder, "GitVolumePushed", "1 path")

	for _, row := range rows {
		s.describes(row.pod, row.event, row.words)
		s.waits(row.pod)
	}
}

// TestArming changes the class in the PersistentVolume under a pod that writes, past what
// the controller refuses of a claim: none, one, another, one that cannot be used.
func TestArming(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	s.Commit(t, "private", "main", "file", "one")
	claim := s.writeable("private", "")
	s.Start("pod", cluster.PodSpec("", cluster.Claim(claim)))
	s.Runs("pod", cluster.Patient)
	was := s.Get("pod")
	s.Exec("pod", "echo two > /data/file")
	s.bothTell("pod", claim, "GitVolumeUnarmed", "volumeAttributesClassName")
	s.bothTell("pod", claim, "GitVolumePending", "file")

	first := s.Class(soon())
	s.setClass(claim, first)
	s.bothTell("pod", claim, "GitVolumeArmed", first)
	s.has("private", "main", "file", "two")
	s.HealthBecomes("pod")

	// That of the page: another author, a bound for files, other paths to ignore.
	page := strings.Replace(gitDriver.Block(t, "reference/class.md", "The class", "yaml", 0),
		"name: config-of-the-shop", fmt.Sprintf("name: %s-shop\n  labels: {%s: %s}", s.Name, gitDriver.Label(), s.Name), 1)
	kube.Apply(t, page)
	s.setClass(claim, s.Name+"-shop")
	s.bothTell("pod", claim, "GitVolumeArmed", s.Name+"-shop")
	s.Exec("pod", "cd /data; mkdir cache; echo no > cache/file; dd if=/dev/zero of=large bs=1k count=257 2>/dev/null; echo three > file")
	s.has("private", "main", "file", "three")
	if got := s.Git(t, "private", "log -1 --format='%an %ae' main"); got != "Shop shop@example.com" {
		t.Errorf("the author is %q", got)
	}
	s.bothTell("pod", claim, "GitVolumeFileSkipped", "large")
	for _, left := range []string{"cache", "large"} {
		s.hasNot("private", "main", left)
	}

	s.setClass(claim, s.Class(map[string]string{"push.quiesce": "1s"}))
	s.bothTell("pod", claim, "GitVolumeUnarmed", "push.quiesce")
	s.Exec("pod", "echo four > /data/file")
	s.setClass(claim, first)
	s.has("private", "main", "file", "four")
	s.Unharmed(was)
}
