package remote

import (
	"net/netip"
	"strings"

	"liken.sh/gitvolume/internal/attributes"
)

// proxies are what the environment says of proxies, as curl reads it: HTTP_PROXY is not
// looked at, because a program that a web server runs has there what a client sent as the
// header "Proxy", and curl cannot know that it is none.
type proxies struct {
	http, https, all string
	except           []string
}

func proxiesOf(environment []string) proxies {
	first := func(names ...string) string {
		for _, name := range names {
			if value := variable(environment, name); value != "" {
				return value
			}
		}
		return ""
	}
	return proxies{
		http:  first("http_proxy"),
		https: first("https_proxy", "HTTPS_PROXY"),
		all:   first("all_proxy", "ALL_PROXY"),
		except: strings.FieldsFunc(first("no_proxy", "NO_PROXY"), func(r rune) bool {
			return r == ',' || r == ' '
		}),
	}
}

// proxy is the one to reach the URL by; empty for none. Only http and https have one.
func (p proxies) proxy(url attributes.URL) string {
	if !url.IsHTTP() || p.excepted(url.Host) {
		return ""
	}
	proxy := p.https
	if url.Scheme == "http" {
		proxy = p.http
	}
	if proxy == "" {
		proxy = p.all
	}
	return proxy
}

// excepted reads NO_PROXY as curl does: "*", names that also stand for what is below
// them, with or without a leading dot, addresses, and networks such as 10.0.0.0/8.
func (p proxies) excepted(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	address, err := netip.ParseAddr(host)
	isAddress := err == nil
	for _, entry := range p.except {
		entry = strings.ToLower(strings.Trim(strings.TrimSuffix(entry, "."), "[]"))
		if entry == "*" {
			return true
		}
		if !isAddress {
			entry = strings.TrimPrefix(entry, ".")
			if host == entry || strings.HasSuffix(host, "."+entry) {
				return true
			}
			continue
		}
		if network, err := netip.ParsePrefix(entry); err == nil && network.Contains(address) {
			return true
		}
		if other, err := netip.ParseAddr(entry); err == nil && other == address {
			return true
		}
	}
	return false
}
