package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/logtest"
)

const (
	driver     = "git.example"
	annotation = "git.example/pull"
)

// hook is a webhook in a bubble, on a cluster made there.
type hook struct {
	*Webhook
	t      *testing.T
	server *apiserver.Server
	log    *logtest.Log
	stop   func()
}

func newHook(t *testing.T, server *apiserver.Server) *hook {
	t.Helper()
	client, err := apiclient.ForConfig(server.InProcess())
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{t: t, server: server, log: &logtest.Log{}}
	h.Webhook, err = New(Settings{Client: client, Driver: driver, Annotation: annotation, Meter: noop.Meter{}, Log: h.log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// runs starts it, and lets the catching up of the start be over and forgotten.
func (h *hook) runs() *hook {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.Run(ctx) })
	h.stop = sync.OnceFunc(func() { cancel(); running.Wait(); h.End() })
	h.t.Cleanup(h.stop)
	time.Sleep(time.Minute)
	h.server.ForgetRequests()
	return h
}

// bubble runs a test on a webhook that runs, in a cluster with the usual volumes.
func bubble(t *testing.T, test func(t *testing.T, h *hook)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New()
		server.PutSecret("shop", "forge", map[string]string{"secret": "s3cret\n"})
		server.PutSecret("blog", "forge", map[string]string{"secret": "other"})
		put(server, "shop-config", "shop", map[string]string{"url": "https://github.com/shop/config.git", "webhookSecret": "forge"})
		put(server, "shop-config-2", "shop", map[string]string{"url": "git@github.com:shop/config", "ref": "refs/heads/main", "webhookSecret": "forge", "pull": "on-demand"})
		put(server, "shop-dev", "shop", map[string]string{"url": "https://github.com/shop/config.git", "ref": "dev", "webhookSecret": "forge"})
		put(server, "shop-other", "shop", map[string]string{"url": "https://github.com/shop/other.git", "webhookSecret": "forge"})
		put(server, "shop-quiet", "shop", map[string]string{"url": "https://github.com/shop/config.git"})
		put(server, "blog-config", "blog", map[string]string{"url": "https://github.com/shop/config.git", "webhookSecret": "forge"})
		test(t, newHook(t, server).runs())
	})
}

func volume(name, namespace string, attributes map[string]string) *corev1.PersistentVolume {
	pv := apiserver.Volume(name, driver, name)
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	pv.Spec.ClaimRef.Namespace = namespace
	pv.Spec.CSI.VolumeAttributes = attributes
	return pv
}

func put(server *apiserver.Server, name, namespace string, attributes map[string]string) {
	server.PutVolume(volume(name, namespace, attributes))
}

// marked are the volumes that were patched since the last time.
func (h *hook) marked() []string {
	synctest.Wait()
	var names []string
	for _, request := range h.server.Requests() {
		if request.Verb == "patch" {
			names = append(names, request.Name)
		}
	}
	h.server.ForgetRequests()
	slices.Sort(names)
	return names
}

func (h *hook) wantMarked(want ...string) {
	h.t.Helper()
	if got := h.marked(); !slices.Equal(got, want) {
		h.t.Errorf("marked are %v, want %v", got, want)
	}
}

// sent is what a request was answered, and after how long.
type sent struct {
	code int
	body string
	took time.Duration
}

func (h *hook) send(path string, d delivery) sent {
	return h.sendBody(path, d, int64(len(d.body)))
}

// sendChunked does not say how long the body is.
func (h *hook) sendChunked(path string, d delivery) sent { return h.sendBody(path, d, -1) }

func (h *hook) sendBody(path string, d delivery, length int64) sent {
	request := httptest.NewRequestWithContext(h.t.Context(), http.MethodPost, path, bytes.NewReader(d.body))
	request.Header, request.ContentLength = d.header, length
	answer := httptest.NewRecorder()
	began := time.Now()
	h.ServeHTTP(answer, request)
	return sent{answer.Code, answer.Body.String(), time.Since(began)}
}

func (h *hook) push() delivery {
	return deliver("github", "push", "s3cret", fixture(h.t, "github-push"))
}

// largePush is GitHub's push with commits that fill so many bytes.
func (h *hook) largePush(size int) []byte {
	body := bytes.TrimSpace(fixture(h.t, "github-push"))
	filled := append([]byte(`{"before_all":[{"message":"`), bytes.Repeat([]byte("x"), size-len(body)-len(`{"before_all":[{"message":""}],`)+1)...)
	return append(append(filled, `"}],`...), body[1:]...)
}

func TestAPushMarks(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		got := h.send("/webhook/shop/forge", h.push())
		if got.code != http.StatusAccepted || got.body != "2 volumes pull refs/heads/main\n" || got.took != 0 {
			t.Errorf("%+v", got)
		}
		h.wantMarked("shop-config", "shop-config-2")
		first := h.server.Annotations("shop-config")[annotation]
		if at, err := time.Parse(time.RFC3339Nano, first); err != nil || !at.Equal(time.Now()) {
			t.Errorf("the annotation is %q, %v", first, err)
		}
		time.Sleep(time.Minute)
		h.send("/webhook/shop/forge", h.push())
		h.wantMarked("shop-config", "shop-config-2")
		if second := h.server.Annotations("shop-config")[annotation]; second == first {
			t.Errorf("the annotation is still %q", second)
		}
	})
}

func TestWhatIsMarked(t *testing.T) {
	push := func(ref, clone string) delivery {
		return deliver("gitea", "push", "s3cret", fmt.Appendf(nil, `{"ref":%q,"repository":{"clone_url":%q}}`, ref, clone))
	}
	for name, row := range map[string]struct {
		attributes map[string]string
		change     func(*corev1.PersistentVolume)
		d          delivery
		isMarked   bool
	}{
		"as it is written":   {d: push("refs/heads/main", "https://forge.example/shop/config"), isMarked: true},
		"by ssh and a port":  {attributes: map[string]string{"url": "ssh://git@forge.example:2222/shop/config.git"}, d: push("refs/heads/main", "https://forge.example/shop/config"), isMarked: true},
		"in another case":    {attributes: map[string]string{"url": "git@Forge.example:Shop/Config"}, d: push("refs/heads/main", "https://forge.example/shop/config.git"), isMarked: true},
		"with a slash":       {attributes: map[string]string{"url": "https://forge.example/shop/config/"}, d: push("refs/heads/main", "https://forge.example/shop/config.git"), isMarked: true},
		"a tag":              {attributes: map[string]string{"ref": "v1"}, d: push("refs/tags/v1", "https://forge.example/shop/config"), isMarked: true},
		"a branch in full":   {attributes: map[string]string{"ref": "refs/heads/v1"}, d: push("refs/heads/v1", "https://forge.example/shop/config"), isMarked: true},
		"on demand":          {attributes: map[string]string{"pull": "on-demand"}, d: push("refs/heads/main", "https://forge.example/shop/config"), isMarked: true},
		"another branch":     {d: push("refs/heads/dev", "https://forge.example/shop/config")},
		"the tag of a name":  {attributes: map[string]string{"ref": "refs/heads/v1"}, d: push("refs/tags/v1", "https://forge.example/shop/config")},
		"a longer branch":    {d: push("refs/heads/x/main", "https://forge.example/shop/config")},
		"another repository": {d: push("refs/heads/main", "https://forge.example/shop/config2")},
		"another host":       {d: push("refs/heads/main", "https://forge.example.org/shop/config")},
		"a commit":           {attributes: map[string]string{"ref": strings.Repeat("a", 40)}, d: push("refs/heads/main", "https://forge.example/shop/config")},
		"one that is written": {
			attributes: map[string]string{"webhookSecret": "forge"},
			change:     func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes[0] = corev1.ReadWriteOncePod },
			d:          push("refs/heads/main", "https://forge.example/shop/config"),
		},
		"another driver's": {
			change: func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other.example" },
			d:      push("refs/heads/main", "https://forge.example/shop/config"),
		},
		"one of no claim": {
			change: func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil },
			d:      push("refs/heads/main", "https://forge.example/shop/config"),
		},
		"of another namespace": {
			change: func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "blog" },
			d:      push("refs/heads/main", "https://forge.example/shop/config"),
		},
		"what the node refuses": {attributes: map[string]string{"depth": "-1"}, d: push("refs/heads/main", "https://forge.example/shop/config")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(_ *testing.T, h *hook) {
				attributes := map[string]string{"url": "https://forge.example/shop/config.git", "webhookSecret": "forge"}
				for key, value := range row.attributes {
					attributes[key] = value
				}
				pv := volume("v", "shop", attributes)
				if row.change != nil {
					row.change(pv)
				}
				h.server.PutVolume(pv)
				synctest.Wait()
				got := h.send("/webhook/shop/forge", row.d)
				if got.code != http.StatusAccepted {
					t.Fatalf("%+v", got)
				}
				if row.isMarked {
					h.wantMarked("v")
					if !strings.HasPrefix(got.body, "1 volume pulls refs/") {
						t.Errorf("it says %q", got.body)
					}
				} else {
					h.wantMarked()
				}
			})
		})
	}
}

// A volume that changes or goes is not marked for what it was.
func TestVolumesThatChange(t *testing.T) {
	bubble(t, func(_ *testing.T, h *hook) {
		h.server.DeleteVolume("shop-config")
		put(h.server, "shop-config-2", "shop", map[string]string{"url": "https://github.com/shop/else.git", "webhookSecret": "forge"})
		put(h.server, "shop-quiet", "shop", map[string]string{"url": "https://github.com/shop/config.git", "webhookSecret": "forge"})
		synctest.Wait()
		h.send("/webhook/shop/forge", h.push())
		h.wantMarked("shop-quiet")
		h.server.MarkDeleting("shop-quiet")
		synctest.Wait()
		h.send("/webhook/shop/forge", h.push())
		h.wantMarked()
	})
}

// A volume that was made again while it was marked is another.
func TestAVolumeMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.server.Inject(apiserver.Fault{Verb: "patch", Name: "shop-config", Times: 1, Do: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			h.server.DeleteVolume("shop-config")
			put(h.server, "shop-config", "blog", map[string]string{"url": "https://github.com/blog/x.git"})
			next.ServeHTTP(w, r)
		}})
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusAccepted {
			t.Errorf("%+v", got)
		}
		if got := h.server.Annotations("shop-config")[annotation]; got != "" {
			t.Errorf("another volume is marked: %q", got)
		}
	})
}

// A burst costs a mark at once and one more, and everyone is answered after theirs.
func TestABurst(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		answers := make([]sent, 20)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = h.send("/webhook/shop/forge", h.push()) })
		}
		all.Wait()
		for _, got := range answers {
			if got.code != http.StatusAccepted || got.took > 2*spacing {
				t.Errorf("%+v", got)
			}
		}
		if marked := h.marked(); len(marked) > 4 {
			t.Errorf("the two volumes are marked %d times: %v", len(marked), marked)
		}
		if reads := h.server.Count("get", "secrets"); reads > 1 {
			t.Errorf("the Secret is read %d times", reads)
		}
	})
}

// A push of thousands of commits counts as a small one does, and costs no more memory.
func TestALargePush(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		body := h.largePush(bodyLimit)
		if len(body) != bodyLimit {
			t.Fatalf("the body has %d bytes", len(body))
		}
		d := deliver("github", "push", "s3cret", body)
		h.send("/webhook/shop/forge", d)
		time.Sleep(spacing)
		h.marked()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const times = 10
		for range times {
			if got := h.send("/webhook/shop/forge", d); got.code != http.StatusAccepted {
				t.Errorf("%+v", got)
			}
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 4*startLimit {
			t.Errorf("each takes %d bytes of memory", each)
		}
		if got := h.marked(); len(got) != 2*times {
			t.Errorf("marked are %v", got)
		}
	})
}

// Among 10,000 volumes a request asks the API server for what it marks alone.
func TestAmongManyVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New()
		server.PutSecret("shop", "forge", map[string]string{"secret": "s3cret"})
		server.AddForeignVolumes(5000)
		for i := range 5000 {
			put(server, fmt.Sprintf("v-%d", i), "shop", map[string]string{"url": fmt.Sprintf("https://github.com/shop/config-%d", i), "webhookSecret": "forge"})
		}
		put(server, "shop-config", "shop", map[string]string{"url": "https://github.com/shop/config.git", "webhookSecret": "forge"})
		h := newHook(t, server).runs()
		time.Sleep(time.Hour) // it catches up at first
		h.server.ForgetRequests()
		for range 10 {
			if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusAccepted || got.took != 0 {
				t.Errorf("%+v", got)
			}
			time.Sleep(2 * time.Second)
		}
		// A watch ends after some minutes, and goes on with another.
		requests := len(h.server.Requests()) - h.server.Count("watch", "persistentvolumes")
		if requests != 11 || h.server.Count("get", "secrets") != 1 || h.server.Count("patch", "persistentvolumes") != 10 {
			t.Errorf("%d requests beside the watch, want a Secret and 10 marks", requests)
		}
	})
}
