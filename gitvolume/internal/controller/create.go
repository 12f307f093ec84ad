package controller

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/quote"
)

// The parameters by which the provisioner names the claim (--extra-create-metadata).
const (
	keyClaim     = "csi.storage.k8s.io/pvc/name"
	keyNamespace = "csi.storage.k8s.io/pvc/namespace"
)

// longestName is Kubernetes's bound of a name, in bytes.
const longestName = 253

// CreateVolume is refused for good (InvalidArgument): nothing in a claim says of which
// repository the volume is to be. The words are the claim's Event, ProvisioningFailed.
func (c *Controller) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	reference := "{namespace: the claim's, name: the claim's}"
	namespace, name := request.GetParameters()[keyNamespace], request.GetParameters()[keyClaim]
	if namespace != "" && name != "" {
		reference = fmt.Sprintf("{namespace: %s, name: %s}", quote.Printable(namespace, longestName), quote.Printable(name, longestName))
	}
	return nil, argument(fmt.Sprintf("%[1]s makes no volumes, it shows repositories: write a PersistentVolume with spec.claimRef: %[2]s, "+
		"accessModes [ReadWriteOncePod] for a volume that one pod writes or [ReadOnlyMany] for one that is only read, "+
		"csi.driver: %[1]s, csi.volumeHandle: a name of its own, csi.volumeAttributes.url: the repository's; "+
		"and give it and the claim one storageClassName for which there is no StorageClass", c.driver, reference))
}
