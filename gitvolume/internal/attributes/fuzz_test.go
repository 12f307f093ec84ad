package attributes

import (
	"errors"
	"maps"
	"net/netip"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"liken.sh/csicommon/handle"
)

// A ref that is taken is one that git takes, under its full name.
func FuzzRef(f *testing.F) {
	for _, text := range []string{
		"main", "refs/heads/a/b", "refs/tags/v1", "a..b", "a.lock/b", "@", "a@{b", "-x", "HEAD", "\xff", "a\x7f", "a b", "refs/", "x.", ".x/y",
		strings.Repeat("a", 40), strings.Repeat("A", 40), strings.Repeat("b", 64), strings.Repeat("n/", 130) + "x",
	} {
		f.Add(text, int(KindWriteable), "notes.example")
		f.Add(text, int(KindInline), "")
	}
	f.Fuzz(func(t *testing.T, text string, kind int, volume string) {
		k := Kind(uint(kind) % 3)
		if handle.Check(volume) != nil {
			volume = "v"
		}
		ref, err := parseRef(k, text, volume)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("%q: %q", text, err)
			}
			return
		}
		names := []string{}
		if branch := ref.Branch(); branch != "" {
			names = append(names, branch)
			if k == KindWriteable {
				names = append(names, SideBranch(branch, volume))
			}
		} else if k == KindWriteable {
			t.Errorf("%q is no branch", text)
		}
		if full, isFull := ref.Full(); isFull {
			names = append(names, full)
		}
		for _, name := range names {
			if out, err := exec.Command("git", "check-ref-format", name).CombinedOutput(); err != nil {
				t.Errorf("%q is taken as %q, and git takes it not: %v %s", text, name, err, out)
			}
		}
	})
}

// A pattern says the same in its own spelling, and matches no URL whose host is not its own,
// nor one that leaves its directory.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{
		"*", "example.com", "*.example.com", "https://example.com:8443/org/*", "ssh://[::1]/a*b/c", "EXAMPLE.com.", "a*b.com", "https://*/x/../y",
		"example.com/[a-z]", "git://h:0/x", "h:99999", "::1", "[::1]:22/x", "h/a/*/c.git",
	} {
		f.Add(text, "https://example.com/org/repo.git")
		f.Add(text, "git@a.example.com:org/../x")
	}
	f.Fuzz(func(t *testing.T, text, url string) {
		p, err := ParsePattern(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("%q: %q", text, err)
			}
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q is %q, and that %q, %v", text, p, again, err)
		}
		u, err := ParseURL(url)
		if err != nil {
			return
		}
		matched := p.Match(u)
		if again.Match(u) != matched {
			t.Errorf("%q and %q do not say the same of %q", text, p, url)
		}
		if !matched {
			return
		}
		host := strings.TrimPrefix(p.host, "*.")
		if p.host != anyHost && host != u.CanonicalHost() && !strings.HasSuffix(u.CanonicalHost(), "."+host) {
			t.Errorf("%q lets %q be reached", text, url)
		}
		below := "/" + strings.Trim(u.Path, "/")
		if p.segments != nil && path.Clean(below) != below {
			t.Errorf("%q lets %q be reached, whose path is %q", text, url, path.Clean(below))
		}
	})
}

// What is allowed is what the text says, an address is refused whichever way it is spelled,
// and nothing that is refused comes by one in IPv6.
func FuzzAddresses(f *testing.F) {
	for _, text := range []string{"10.0.0.0/8", "127.0.0.1", "::1", "fe80::1%eth0", "::ffff:127.0.0.1", "10.0.0.1/8", "0.0.0.0/0", "::/0", "169.254.169.254/32", "1.2.3", "/"} {
		f.Add(text, []byte{169, 254, 169, 254})
		f.Add(text, []byte("\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x00\x00\x01"))
		f.Add(text, []byte("\x20\x02\x7f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"))
	}
	f.Fuzz(func(t *testing.T, text string, bytes []byte) {
		addr, isAddress := netip.AddrFromSlice(bytes)
		allowed, err := ParseAddresses([]string{text})
		if err != nil && (!errors.Is(err, ErrInvalid) || strings.ContainsAny(err.Error(), "\n\x1b\x00")) {
			t.Errorf("%q: %q", text, err)
		}
		if !isAddress {
			return
		}
		none := Addresses{}
		refused := none.Check(addr)
		if refused != nil && !errors.Is(refused, ErrAddress) {
			t.Errorf("%s: %v", addr, refused)
		}
		if addr.Is4() {
			mapped := netip.AddrFrom16(addr.As16())
			if (none.Check(mapped) == nil) != (refused == nil) {
				t.Errorf("%s is refused: %v, and %s: %v", addr, refused, mapped, none.Check(mapped))
			}
			if refused == nil && (addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified()) {
				t.Errorf("%s is reached", addr)
			}
		}
		if err == nil && refused == nil && allowed.Check(addr) != nil {
			t.Errorf("%s is reached, and with %q allowed it is not: %v", addr, text, allowed.Check(addr))
		}
	})
}

// A volume context of any words is refused by name or makes a volume of URLs that the rules
// allow; the kubelet's own keys say nothing.
func FuzzVolume(f *testing.F) {
	f.Add(0, "url", "https://h/r", "ref", "main", "v", "pull", "1s")
	f.Add(1, "url", "git@h:r", "depth", "1", "v", "webhookSecret", "s")
	f.Add(2, "url", "file:///etc", "ref", "HEAD", "v.w", "offline", "refuse")
	f.Add(1, "url", "ext::sh -c id", "csi.storage.k8s.io/ephemeral", "true", "v", "depth", "99999999999")
	f.Add(0, "URL", "-oProxyCommand=x", "url\n", "\xff", "", "pull", "1ns")
	f.Fuzz(func(t *testing.T, kind int, a, av, b, bv, volume, c, cv string) {
		k := Kind(uint(kind) % 3)
		context := map[string]string{"csi.storage.k8s.io/pod.name": av, a: av, b: bv, c: cv}
		rules := Rules{Allow: []Pattern{{host: "h"}}}
		v, err := rules.Parse(k, context, volume)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || strings.ContainsAny(err.Error(), "\n\x1b\x00") || len(err.Error()) > 4<<10 {
				t.Errorf("%q: %q", context, err)
			}
			if again, second := rules.Parse(k, context, volume); second == nil || second.Error() != err.Error() || again != v {
				t.Errorf("%q: first %q, then %q", context, err, second)
			}
			return
		}
		if v.URL.IsLocal() || v.URL.CanonicalHost() != "h" || v.Depth < 0 || k == KindWriteable && (v.Depth > 0 || v.Ref.Branch() == "") {
			t.Errorf("%q is read as %+v", context, v)
		}
		maps.DeleteFunc(context, func(name, _ string) bool { return strings.HasPrefix(name, kubernetesPrefix) })
		if again, err := rules.Parse(k, context, volume); err != nil || again != v {
			t.Errorf("%q: without the kubelet's keys %+v, %v", slices.Collect(maps.Keys(context)), again, err)
		}
	})
}
