//go:build e2e

package gitvolume

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// soon are the parameters of a class under which a test sees what a pod wrote.
func soon() map[string]string {
	return map[string]string{"push.quiesce": "5s", "push.maxLatency": "10s", "ignore": "*.tmp"}
}

// onStop are the parameters of a class under which nothing is committed before the pod
// stops.
func onStop() map[string]string {
	return map[string]string{"push.quiesce": "1h", "push.maxLatency": "never"}
}

// writeable makes a PersistentVolume that one pod writes, of the branch main of a private
// repository, and its claim, with the Secret "token" and the class, none when empty.
func (s *space) writeable(repository, class string, change ...func(*corev1.PersistentVolume)) string {
	s.T.Helper()
	spec := s.volume(corev1.ReadWriteOncePod, "token", attributes(s.HTTPS(repository)))
	if class != "" {
		spec.VolumeAttributesClassName = &class
	}
	return s.Volume(spec, change...)
}

// reclaimed gives a PersistentVolume that policy.
func reclaimed(policy corev1.PersistentVolumeReclaimPolicy) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) { volume.Spec.PersistentVolumeReclaimPolicy = policy }
}

// sideOf is the side branch of a volume of the branch main.
func sideOf(handle string) string { return "main." + handle }

// has waits until the file has that content in the branch.
func (s *space) has(repository, branch, file, want string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("%s of %s has %.40q in %s", branch, repository, want, file), func() error {
		got, err := s.TryGit(repository, "show "+branch+":"+file)
		if err == nil && got != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

// hasNot fails the test if the branch has the file.
func (s *space) hasNot(repository, branch, file string) {
	s.T.Helper()
	if got := s.Git(s.T, repository, "ls-tree -r --name-only "+branch+" -- "+file); got != "" {
		s.T.Errorf("%s of %s has %q", branch, repository, got)
	}
}

// branches fails the test unless the repository has these, in the order of names.
func (s *space) branches(repository string, want ...string) {
	s.T.Helper()
	if got := strings.Fields(s.Git(s.T, repository, "for-each-ref --format='%(refname:short)' refs/heads")); strings.Join(got, " ") != strings.Join(want, " ") {
		s.T.Errorf("%s has the branches %q, want %q", repository, got, want)
	}
}

// setClass names the class in the PersistentVolume, as the resizer does once the controller
// has found that of the claim right.
func (s *space) setClass(volume, class string) {
	s.T.Helper()
	kube.Run(s.T, "kubectl", "patch", "persistentvolume", volume, "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"volumeAttributesClassName":%q}}`, class))
}

// bothTell waits until pod and claim show the Event.
func (s *space) bothTell(pod, claim, reason, words string) {
	s.T.Helper()
	s.tells("pod", pod, reason, words)
	s.tells("persistentvolumeclaim", claim, reason, words)
}

// counting is a container that writes the numbers from one on, each to a file of its own,
// which appears whole, and as a line through a file that it keeps open. It goes on where it
// was if it is restarted, and ends, to be restarted and counted, when it cannot write.
func counting(spec *corev1.PodSpec) {
	spec.Containers[0].Command = []string{"sh", "-ec", `trap exit TERM
mkdir -p /data/each
touch /data/all
i=$(tail -n 1 /data/all)
exec 3>>/data/all
until [ -e /data/enough.tmp ]; do
	i=$((i + 1))
	echo $i >/data/each/$i.tmp
	mv /data/each/$i.tmp /data/each/$i
	echo $i >&3
	sleep 0.5
done
touch /data/done.tmp
` + cluster.Idle}
}

// countsOn waits until the branch main has numbers that the pod wrote from now on.
func (s *space) countsOn(pod, repository string) {
	s.T.Helper()
	var last string
	// A kubelet that has just begun does not know the pod yet.
	cluster.Eventually(s.T, cluster.Soon, pod+" counts", func() (err error) {
		last, err = s.Try(pod, "tail -n 1 /data/all")
		return err
	})
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("%s has what %s writes after %s", repository, pod, last), func() error {
		_, err := s.TryGit(repository, "cat-file -e main:each/"+last)
		return err
	})
}

// counted ends the counting of the pod, and fails the test unless the branch main has every
// number once, and got it once.
func (s *space) counted(pod, repository string) {
	s.T.Helper()
	s.Exec(pod, "touch /data/enough.tmp")
	cluster.Eventually(s.T, cluster.Soon, pod+" ends counting", func() error {
		_, err := s.Try(pod, "test -e /data/done.tmp")
		return err
	})
	written := s.Exec(pod, "cat /data/all")
	numbers := strings.Fields(written)
	for i, number := range numbers {
		if number != fmt.Sprint(i+1) {
			s.T.Fatalf("line %d of what %s wrote is %q", i+1, pod, number)
		}
	}
	s.has(repository, "main", "all", written)
	s.T.Logf("%s wrote %d numbers, in %s commits", pod, len(numbers), s.Git(s.T, repository, "rev-list --count main"))
	if got := strings.Fields(s.Git(s.T, repository, "ls-tree --name-only main:each")); len(got) != len(numbers) {
		s.T.Errorf("%s has %d files of %d", repository, len(got), len(numbers))
	}
	came := map[string]int{}
	for line := range strings.Lines(s.Git(s.T, repository, "log --format= --no-renames --name-status main -- each")) {
		came[strings.TrimSpace(line)]++
	}
	for _, number := range numbers {
		if line := "A\teach/" + number; came[line] != 1 {
			s.T.Errorf("%s was added %d times", number, came[line])
		}
	}
	if len(came) != len(numbers) {
		s.T.Errorf("the files were changed in %d ways, want %d: %v", len(came), len(numbers), came)
	}
	for line := range strings.Lines(s.Git(s.T, repository, "log --format= --numstat main -- all")) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[1] != "0" {
			s.T.Errorf("a commit took lines away: %q", line)
		}
	}
	if empty := s.emptyCommits(repository); empty != "" {
		s.T.Errorf("commits change nothing: %s", empty)
	}
	s.branches(repository, "main")
}

// emptyCommits are those that change nothing.
func (s *space) emptyCommits(repository string) string {
	s.T.Helper()
	var empty []string
	before := ""
	for line := range strings.Lines(s.Git(s.T, repository, "log --reverse --first-parent --format='%H %T' main")) {
		commit, tree, _ := strings.Cut(strings.TrimSpace(line), " ")
		if tree == before {
			empty = append(empty, commit)
		}
		before = tree
	}
	return strings.Join(empty, " ")
}

// describes waits until `kubectl describe pod` has a line with all the words.
func (s *space) describes(pod string, words ...string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("pod %s tells of %q", pod, words), func() error {
		if said := kube.Run(s.T, "kubectl", "--namespace", s.Name, "describe", "pod", pod); !cluster.LineHas(said, words...) {
			return errors.New(said)
		}
		return nil
	})
}
