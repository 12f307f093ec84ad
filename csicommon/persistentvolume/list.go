package persistentvolume

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	// pageSize bounds what the API server holds for one answer.
	pageSize = 250
	// listTries is how often a list starts over because its pages expired: a
	// continue token lives about as long as etcd keeps old versions, minutes.
	listTries = 3
)

// List reads every PersistentVolume of the cluster, live and page by page, and
// returns those of driver. The read is complete or an error: never a part.
//
// Complete does not mean that the right cluster answered; see Confirm.
func (v *View) List(ctx context.Context, driver string) ([]Volume, error) {
	var volumes []Volume
	err := listWhole(v.config.Log, func() error {
		volumes = nil
		_, err := readPages(ctx, v.config.Client, func(o *object) {
			if o.is(driver) {
				volumes = append(volumes, o.volume(v.config.Annotations))
			}
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the PersistentVolumes of %q: %w", driver, err)
	}
	return volumes, nil
}

// listWhole repeats once, which reads all pages, when its pages expired.
func listWhole(log *slog.Logger, once func() error) error {
	for try := 1; ; try++ {
		err := once()
		if err == nil || !expired(err) || try == listTries {
			return err
		}
		log.Debug("the list of PersistentVolumes expired and starts over", "error", err)
	}
}

// expired tells the API server's 410: it has forgotten the version asked for.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// readPages reads all pages of one snapshot, hands each item to each, which must not keep
// it, and returns the snapshot's version. The first page says how many items follow it; a
// list that ends with another number has lost or gained some.
func readPages(ctx context.Context, client rest.Interface, each func(*object)) (version string, err error) {
	var (
		read     int
		expected = -1
		token    string
	)
	for number := 1; ; number++ {
		p, err := readPage(ctx, client, token, each)
		if err != nil {
			return "", fmt.Errorf("page %d: %w", number, err)
		}
		read += p.items
		if number == 1 {
			version = p.version
			if p.remaining != nil {
				expected = read + *p.remaining
			}
		}
		if p.next == "" {
			break
		}
		if p.next == token {
			return "", fmt.Errorf("page %d: the API server names the same page as the next one", number)
		}
		token = p.next
	}
	if expected >= 0 && read != expected {
		return "", fmt.Errorf("the list is not complete: %d PersistentVolumes announced, %d read", expected, read)
	}
	return version, nil
}

// readPage reads the page that token stands for. No resourceVersion is asked
// for: any other list may be served from a cache that is behind.
func readPage(ctx context.Context, client rest.Interface, token string, each func(*object)) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := client.Get().Resource(resource).Param("limit", strconv.Itoa(pageSize))
	if token != "" {
		request = request.Param("continue", token)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = body.Close() }()
	return decodePage(body, each)
}

// Confirm is the read that must precede a removal: List, with the proof that
// cluster (a UID as Cluster returns it) answered before and after. A list alone
// proves nothing: that of a new, empty cluster behind the same address is
// complete and names no volume. The error wraps ErrOtherCluster then.
func (v *View) Confirm(ctx context.Context, cluster, driver string) ([]Volume, error) {
	if err := v.expect(ctx, cluster); err != nil {
		return nil, err
	}
	volumes, err := v.List(ctx, driver)
	if err != nil {
		return nil, err
	}
	if err := v.expect(ctx, cluster); err != nil {
		return nil, err
	}
	return volumes, nil
}

func (v *View) expect(ctx context.Context, cluster string) error {
	answering, err := v.Cluster(ctx)
	if err != nil {
		return err
	}
	if answering != cluster {
		return fmt.Errorf("%w: expected %q, got %q", ErrOtherCluster, cluster, answering)
	}
	return nil
}
