package attributes

import (
	"errors"
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, row := range []struct {
		allow   []string
		reached []string
		refused []string
	}{
		{
			nil,
			[]string{"10.0.0.1", "192.168.1.1", "172.16.0.1", "140.82.121.3", "100.64.0.1", "fd00::1", "2606:50c0::1", "64:ff9b::8c52:7903", "64:ff9b:1::8c52:7903", "::ffff:10.0.0.1", "2002:8c52:7903::1"},
			[]string{
				"127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "169.254.1.1", "fe80::1", "fe80::1%eth0", "fec0::1",
				"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "100.100.100.200", "192.0.0.192", "168.63.129.16",
				"224.0.0.1", "239.1.1.1", "ff02::1", "255.255.255.255",
				"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::169.254.169.254",
				"64:ff9b::7f00:1", "64:ff9b::169.254.169.254", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:2:a9:fea9:fe00:0",
				"2002:7f00:1::1", "2002:a9fe:a9fe::", "2001:0:1:2:3:4:80ff:fffe",
			},
		},
		{
			[]string{"127.0.0.1", "fe80::/64", "169.254.0.0/16"},
			[]string{"127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1", "169.254.169.254"},
			[]string{"127.0.0.2", "::1", "fe80:0:0:1::1"},
		},
		{[]string{"::1"}, []string{"::1"}, []string{"127.0.0.1"}},
	} {
		addresses, err := ParseAddresses(row.allow)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range row.reached {
			if err := addresses.Check(netip.MustParseAddr(text)); err != nil {
				t.Errorf("with %q: %v", row.allow, err)
			}
		}
		for _, text := range row.refused {
			if err := addresses.Check(netip.MustParseAddr(text)); !errors.Is(err, ErrAddress) {
				t.Errorf("with %q, %s is reached: %v", row.allow, text, err)
			}
		}
	}
	if err := (Addresses{}).Check(netip.Addr{}); !errors.Is(err, ErrAddress) {
		t.Errorf("no address is reached: %v", err)
	}
}

func TestParseAddressesRefuses(t *testing.T) {
	for _, bad := range []string{"", "localhost", "127.0.0.1/8", "10.0.0.0/33", "fe80::1%eth0", "::ffff:127.0.0.1", "127.1", "10.0.0.0/"} {
		if a, err := ParseAddresses([]string{bad}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is accepted as %v, %v", bad, a, err)
		}
	}
}
