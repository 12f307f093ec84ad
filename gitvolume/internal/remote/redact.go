package remote

import (
	"net/url"
	"slices"
	"strings"
)

// redactor takes the session's secrets out of a text, and those of the environment's
// proxies: a server may repeat the first, and curl the second.
func (c *Command) redactor(remote *Remote) func(string) string {
	session := func(text string) string { return text }
	if remote != nil {
		if redactor, ok := remote.Session.(Redactor); ok {
			session = redactor.Redact
		}
	}
	return func(text string) string { return c.proxies.redact(session(text)) }
}

// redact takes the credentials of the proxies out of a text.
func (p proxies) redact(text string) string {
	for _, proxy := range []string{p.http, p.https, p.all} {
		for _, form := range userinfo(proxy) {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return text
}

// userinfo are the forms in which the user and the password of a proxy's URL may be
// shown, the longest first; none, if it has none. curl takes URLs that are not
// well-formed too, or complains of them with the URL in its words.
func userinfo(proxy string) []string {
	_, rest, found := strings.Cut(proxy, "://")
	if !found {
		rest = proxy
	}
	end := strings.LastIndexByte(rest, '@')
	if end < 0 {
		return nil
	}
	user, password, _ := strings.Cut(rest[:end], ":")
	forms := []string{rest[:end], password}
	// What curl takes for the host of a URL that is not well-formed.
	forms = append(forms, strings.FieldsFunc(password, func(r rune) bool { return strings.ContainsRune("#/?@ ", r) })...)
	if plain, err := url.PathUnescape(password); err == nil {
		forms = append(forms, plain)
	}
	if password == "" {
		forms = append(forms, user) // It may be a token alone.
	}
	forms = slices.DeleteFunc(forms, func(form string) bool { return form == "" })
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	return forms
}
