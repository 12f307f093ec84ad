package persistentvolume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/persistentvolume"
)

// crowd puts in n volumes of others, and three of ours on different pages.
func crowd(server *apiserver.Server, n int) {
	server.AddForeignVolumes(n)
	for _, name := range []string{"a-first", "pvc-00000100", "z-last"} {
		server.PutVolume(apiserver.Volume(name, driver, "h-"+name))
	}
}

func names(volumes []persistentvolume.Volume) string {
	var names []string
	for _, volume := range volumes {
		names = append(names, volume.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

const ours = "a-first pvc-00000100 z-last"

func TestListAmong20000(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		crowd(v.server, 20_000)
		volumes, err := v.List(t.Context(), driver)
		if err != nil || names(volumes) != ours {
			t.Errorf("the list is %s, %v", names(volumes), err)
		}
		if n := v.server.Count("list", "persistentvolumes"); n != 81 {
			t.Errorf("%d requests, want 81 pages", n)
		}
	})
}

func TestListOfAnEmptyCluster(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		if volumes, err := v.List(t.Context(), driver); err != nil || len(volumes) != 0 {
			t.Errorf("the list is %s, %v", names(volumes), err)
		}
	})
}

func TestListKeepsTheDriversOnly(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("other", "git.liken.sh", "h1"))
		v.server.PutVolume(apiserver.Volume("ours", driver, "h1"))
		v.server.MarkDeleting("ours")
		nfs := apiserver.Volume("nfs", "", "")
		nfs.Spec.CSI = nil
		v.server.PutVolume(nfs)
		volumes, err := v.List(t.Context(), driver)
		if err != nil || names(volumes) != "ours" || !volumes[0].Deleting {
			t.Errorf("the list is %+v, %v", volumes, err)
		}
	})
}

func edit(from, to string) apiserver.Action {
	return apiserver.Edit(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(from), []byte(to)) })
}

// Whatever is wrong with one page, the answer is an error and no volumes.
func TestListIsWholeOrAnError(t *testing.T) {
	tests := map[string]struct {
		page   int
		action apiserver.Action
	}{
		"page 1 refused":                  {1, apiserver.Refuse(403)},
		"page 2 refused":                  {2, apiserver.Refuse(500)},
		"page 5, the last, refused":       {5, apiserver.Refuse(503)},
		"page 2 cut":                      {2, apiserver.Cut()},
		"page 2 ends early":               {2, apiserver.Truncate()},
		"page 5 ends early":               {5, apiserver.Truncate()},
		"page 3 is HTML":                  {3, apiserver.Page(200, "<html>")},
		"page 3 is empty":                 {3, apiserver.Page(200, "")},
		"page 3 is {}":                    {3, apiserver.Page(200, "{}")},
		"page 3 is a Status":              {3, apiserver.Page(200, `{"kind":"Status","status":"Success","metadata":{"resourceVersion":"1"}}`)},
		"page 3 has no items":             {3, edit(`"items":`, `"articles":`)},
		"page 3 has items that are none":  {3, edit(`"items":[`, `"items":"","was":[`)},
		"page 3 has an item of no name":   {3, edit(`"name":"pvc-`, `"nom":"pvc-`)},
		"page 3 has an item of no UID":    {3, edit(`"uid":`, `"gid":`)},
		"page 3 followed by more":         {3, apiserver.Edit(func(body []byte) []byte { return append(body, "{}"...) })},
		"page 1 forgets the next one":     {1, edit(`"continue":`, `"weiter":`)},
		"page 3 forgets the next one":     {3, edit(`"continue":`, `"weiter":`)},
		"page 1 announces one too few":    {1, edit(`"remainingItemCount":753`, `"remainingItemCount":752`)},
		"page 1 announces one too many":   {1, edit(`"remainingItemCount":753`, `"remainingItemCount":754`)},
		"page 1 announces what is no sum": {1, edit(`"remainingItemCount":753`, `"remainingItemCount":"?"`)},
		"page 4 lacks its items": {4, apiserver.Edit(func(body []byte) []byte {
			head, _, _ := bytes.Cut(body, []byte(`"items":`))
			return append(head, `"items":[]}`...)
		})},
		"page 2 names itself as the next": {2, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = fmt.Fprintf(w, `{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"1","continue":%q},"items":[]}`,
				r.URL.Query().Get("continue"))
		}},
		"page 3 never comes": {3, apiserver.Hold(nil)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, v *viewing) {
				crowd(v.server, 1000)
				heal := v.server.Inject(apiserver.Fault{Verb: "list", Page: test.page, Do: test.action})
				volumes, err := v.List(t.Context(), driver)
				if err == nil || volumes != nil {
					t.Errorf("the list is %s, %v", names(volumes), err)
				}
				heal()
				if volumes, err := v.List(t.Context(), driver); err != nil || names(volumes) != ours {
					t.Errorf("afterwards the list is %s, %v", names(volumes), err)
				}
			})
		})
	}
}

// A single page announces no number of items: only its own end tells that it is
// whole, wherever it was cut.
func TestListCutAnywhere(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		v.server.PutVolume(apiserver.Volume("p2", driver, "h2"))
		length, whole := 0, 1
		v.server.Inject(apiserver.Fault{Verb: "list", Do: apiserver.Edit(func(body []byte) []byte {
			whole = len(body)
			return body[:length]
		})})
		for ; length < whole; length++ {
			if volumes, err := v.List(t.Context(), driver); err == nil {
				t.Errorf("cut after %d of %d bytes the list is %q", length, whole, names(volumes))
			}
		}
		if volumes, err := v.List(t.Context(), driver); err != nil || names(volumes) != "p1 p2" || length < 500 {
			t.Errorf("whole, with %d bytes, the list is %q, %v", length, names(volumes), err)
		}
	})
}

func TestListStartsOverWhenItExpires(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		crowd(v.server, 1000)
		v.server.Inject(apiserver.Fault{Verb: "list", Page: 3, Times: 1, Do: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			v.server.DeleteVolume("z-last")
			v.server.Compact()
			next.ServeHTTP(w, r)
		}})
		volumes, err := v.List(t.Context(), driver)
		if err != nil || names(volumes) != "a-first pvc-00000100" {
			t.Errorf("the list is %s, %v", names(volumes), err)
		}
		v.server.Inject(apiserver.Fault{Verb: "list", Page: 2, Do: apiserver.Refuse(410)})
		v.server.ForgetRequests()
		if volumes, err := v.List(t.Context(), driver); err == nil || volumes != nil {
			t.Errorf("a list that always expires is %s, %v", names(volumes), err)
		}
		if n := v.server.Count("list", "persistentvolumes"); n != 6 {
			t.Errorf("%d requests, want 3 tries of 2 pages", n)
		}
	})
}

// What is put in while the pages are read changes neither their count nor their end.
func TestListIsOneSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		crowd(v.server, 1000)
		v.server.Inject(apiserver.Fault{Verb: "list", Page: 2, Times: 1, Do: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			v.server.PutVolume(apiserver.Volume("a-later", driver, "h"))
			v.server.DeleteVolume("z-last")
			next.ServeHTTP(w, r)
		}})
		if volumes, err := v.List(t.Context(), driver); err != nil || names(volumes) != ours {
			t.Errorf("the list is %s, %v", names(volumes), err)
		}
	})
}

func TestListKeepsItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		crowd(v.server, 1000)
		v.server.Inject(apiserver.Fault{Verb: "list", Page: 2, Do: apiserver.Hold(nil)})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := v.List(ctx, driver)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A new, empty cluster behind the same address gives complete, empty lists.
func TestConfirm(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		crowd(v.server, 300)
		if volumes, err := v.Confirm(t.Context(), "cluster-1", driver); err != nil || names(volumes) != ours {
			t.Errorf("confirmed are %s, %v", names(volumes), err)
		}
		for _, uid := range []string{"", "cluster-2"} {
			volumes, err := v.Confirm(t.Context(), uid, driver)
			if !errors.Is(err, persistentvolume.ErrOtherCluster) || volumes != nil {
				t.Errorf("for the cluster %q confirmed are %s, %v", uid, names(volumes), err)
			}
		}
		heal := v.server.Inject(apiserver.Fault{Verb: "list", Page: 2, Do: apiserver.Refuse(500)})
		if volumes, err := v.Confirm(t.Context(), "cluster-1", driver); err == nil || errors.Is(err, persistentvolume.ErrOtherCluster) {
			t.Errorf("without a list confirmed are %s, %v", names(volumes), err)
		}
		heal()
		v.server.Inject(apiserver.Fault{Verb: "list", Page: 2, Times: 1, Do: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			v.server.SetCluster("cluster-2")
			next.ServeHTTP(w, r)
		}})
		volumes, err := v.Confirm(t.Context(), "cluster-1", driver)
		if !errors.Is(err, persistentvolume.ErrOtherCluster) || volumes != nil ||
			!strings.Contains(err.Error(), "cluster-1") || !strings.Contains(err.Error(), "cluster-2") {
			t.Errorf("with the cluster changed in between confirmed are %s, %v", names(volumes), err)
		}
		v.server.Inject(apiserver.Fault{Resource: "namespaces", Do: apiserver.Refuse(500)})
		if _, err := v.Confirm(t.Context(), "cluster-2", driver); err == nil || errors.Is(err, persistentvolume.ErrOtherCluster) {
			t.Errorf("with an unknown cluster: %v", err)
		}
	})
}
