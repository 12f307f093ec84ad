package published

import (
	"fmt"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
)

// stagedCredential is the credential of a stage. The kubelet stages PersistentVolumes of one
// handle once, with the Secret of one of them and without its name: it is that of the publish
// that comes next. No pod of another may be let in by it, and no other repository be sent it.
type stagedCredential struct {
	given *credential.Credential
	url   attributes.URL
	// pv is whose the stage was, and named the Secret that it names for that, namespace/name;
	// both empty: not known yet.
	pv, named string
}

func (v *Volumes) keepStaged(handle string, staged stagedCredential) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.staged[handle] = staged
}

func (v *Volumes) dropStaged(handle string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.staged, handle)
}

// stageFor is the stage of a volume that a PersistentVolume's publish comes for. The first
// that comes is whose it was.
func (v *Volumes) stageFor(handle, pv string) stagedCredential {
	v.mu.Lock()
	defer v.mu.Unlock()
	staged, is := v.staged[handle]
	if is && staged.pv == "" {
		staged.pv = pv
	}
	if is && staged.pv == pv && staged.named == "" {
		info, _ := v.settings.Cluster.Get(pv)
		staged.named = info.StageSecret
		v.staged[handle] = staged
	}
	return staged
}

// nameStage notes which Secret a PersistentVolume names for its stage: when it is asked for
// the next time, nobody may follow it any more.
func (v *Volumes) nameStage(pv string, info persistentvolume.Volume) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if staged, is := v.staged[info.Handle]; is && staged.pv == pv && info.StageSecret != "" {
		staged.named = info.StageSecret
		v.staged[info.Handle] = staged
	}
}

// checkStage refuses a publish without a Secret of its own that the stage's is not for.
func (v *Volumes) checkStage(staged stagedCredential, pv string, url attributes.URL) error {
	if staged.url != url {
		return fmt.Errorf("%w: it was staged for %s, and what was given for that is not sent to %s; give each PersistentVolume a volumeHandle of its own",
			ErrSecrets, staged.url.Repo(), url.Repo())
	}
	if staged.pv == pv {
		return nil
	}
	own, _ := v.settings.Cluster.Get(pv)
	switch {
	case own.StageSecret != "" && own.StageSecret == staged.named:
		return nil
	case v.mayTell(pv) || v.hasCluster() && staged.named == "":
		return fmt.Errorf("%w: whether PersistentVolumes %q and %q name one Secret is not known yet", ErrTooEarly, pv, staged.pv)
	}
	return fmt.Errorf("%w: PersistentVolume %q has the volumeHandle of %q, whose Secret the volume was staged with: "+
		"give each a volumeHandle of its own, or name one Secret in both", ErrSecrets, pv, staged.pv)
}
