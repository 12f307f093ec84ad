package ignore_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/ignore"
)

// Each row is a .gitignore, and paths with a slash at the end of a directory's. git
// is asked as well, so that no row can be wrong.
func TestPatterns(t *testing.T) {
	long := strings.Repeat("n", 255)
	rows := map[string]struct {
		content       string
		ignored, kept []string
	}{
		"blank lines and comments":            {"\n  \n#a\n", nil, []string{"#a", "a", " ", "  "}},
		"no newline at the end":               {"a\nb", []string{"a", "b"}, nil},
		"a quoted hash":                       {`\#a`, []string{"#a"}, []string{`\#a`, "a"}},
		"a blank before a hash":               {" #a", []string{" #a"}, []string{"#a"}},
		"a quoted bang":                       {`\!a`, []string{"!a"}, []string{"a"}},
		"two bangs":                           {"*a\n!!a", []string{"a"}, []string{"!a"}},
		"a bang alone":                        {"*\n!", []string{"a", "!"}, nil},
		"blanks at the end":                   {"a  \nb\\ \nc\\  ", []string{"a", "b ", "c "}, []string{"a ", "a  ", "b", "c", "c  "}},
		"blanks before and inside":            {" a b ", []string{" a b"}, []string{"a b", " a b "}},
		"a tab at the end":                    {"a\t", []string{"a\t"}, []string{"a"}},
		"a blank behind a quoted backslash":   {`a\\ `, []string{`a\`}, []string{`a\ `}},
		"CRLF":                                {"a\r\n/b/\r\n\r\nc\r\r\n", []string{"a", "b/", "c\r"}, []string{"a\r", "b", "\r", "c"}},
		"CR at the end of the file":           {"a\r", []string{"a"}, []string{"a\r"}},
		"a blank before CRLF":                 {"a \r\nb\\ \r\n", []string{"a", "b "}, []string{"a ", "b"}},
		"CR in the middle":                    {"a\rb", []string{"a\rb"}, []string{"a", "b"}},
		"a quoted CR is cut with the line":    {"a\\\r\n", nil, []string{"a\r", "a", `a\`}},
		"byte order mark":                     {"\xef\xbb\xbfa\nb", []string{"a", "b"}, []string{"\xef\xbb\xbfa"}},
		"byte order mark before a comment":    {"\xef\xbb\xbf#a", nil, []string{"#a", "a"}},
		"two byte order marks":                {"\xef\xbb\xbf\xef\xbb\xbfa", []string{"\xef\xbb\xbfa"}, []string{"a"}},
		"byte order mark on the second line":  {"x\n\xef\xbb\xbfa", []string{"\xef\xbb\xbfa"}, []string{"a"}},
		"a zero byte ends the line":           {"a\x00b\nc\x00\r\n", []string{"a", "c"}, []string{"b", "ab"}},
		"a zero byte behind a blank":          {"a \x00b", []string{"a"}, []string{"a "}},
		"a plain name at any depth":           {"a", []string{"a", "a/", "x/a", "x/y/a/", "a/b"}, []string{"ab", "ba", "x/ab"}},
		"a leading slash":                     {"/a", []string{"a", "a/", "a/b"}, []string{"x/a"}},
		"a slash in the middle":               {"a/b", []string{"a/b", "a/b/c"}, []string{"x/a/b", "b", "a", "ab"}},
		"both slashes":                        {"/a/b", []string{"a/b"}, []string{"x/a/b"}},
		"two leading slashes":                 {"//a", nil, []string{"a", "x/a"}},
		"two slashes in the middle":           {"a//b", nil, []string{"a/b", "a", "b"}},
		"a slash at the end":                  {"a/", []string{"a/", "x/a/", "a/b"}, []string{"a", "x/a"}},
		"two slashes at the end":              {"a//", nil, []string{"a/", "a/b"}},
		"a slash alone":                       {"/\n//\n///\n", nil, []string{"a", "a/"}},
		"a directory that stays":              {"a\n!a/", []string{"a"}, []string{"a/", "x/a/", "a/b"}},
		"last match wins":                     {"a*\n!ab\nabc\n!abc", []string{"a", "abd"}, []string{"ab", "abc"}},
		"nothing below an ignored directory":  {"a\n!a/b\n!b", []string{"a/b", "a/"}, []string{"b"}},
		"below a directory that stays":        {"a/*\n!a/b", []string{"a/c", "a/c/b"}, []string{"a/b", "a/b/c", "a/"}},
		"everything but one way down":         {"/*\n!/a\n/a/*\n!/a/b", []string{"x", "a/c"}, []string{"a/b", "a/b/c"}},
		"star":                                {"a*b", []string{"ab", "axb", "axbxb", "x/ab"}, []string{"a", "axbc", "xab"}},
		"star alone":                          {"*", []string{"a", ".a", "a/"}, nil},
		"star in a place":                     {"a/*b", []string{"a/b", "a/xb"}, []string{"a/x/b", "x/a/b", "ab"}},
		"a directory star":                    {"*/b", []string{"a/b", "xy/b"}, []string{"b", "a/a/b"}},
		"a star for the middle":               {"a/*/b", []string{"a/x/b"}, []string{"a/b", "a/x/y/b"}},
		"question mark":                       {"a?b\nc/?", []string{"axb", "a?b", "c/d", "a\xffb"}, []string{"ab", "axxb", "a\xc3\xa9b", "c/dd"}},
		"question mark is no slash":           {"a/b?c", nil, []string{"a/b/c"}},
		"suffix":                              {"*.log", []string{".log", "a.log", "x/a.log/"}, []string{"a.log.gz", "log"}},
		"suffix in another case":              {"*.log", nil, []string{"a.LOG"}},
		"prefix":                              {"tmp*", []string{"tmp", "tmpx", "x/tmp.d/"}, []string{"xtmp", "tm"}},
		"leading two stars":                   {"**/a", []string{"a", "x/a", "x/y/a"}, []string{"xa", "ab"}},
		"leading two stars and a place":       {"**/a/b", []string{"a/b", "x/a/b", "x/y/a/b"}, []string{"xa/b", "a/x/b"}},
		"trailing two stars":                  {"a/**", []string{"a/b", "a/b/c"}, []string{"a/", "x/a/b", "a"}},
		"two stars in the middle":             {"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/xb", "x/a/b"}},
		"two stars twice":                     {"a/**/b/**/c", []string{"a/b/c", "a/b/b/c", "a/x/b/y/c"}, []string{"a/c", "a/x/c"}},
		"two stars alone":                     {"**", []string{"a", "a/", "a/b"}, nil},
		"two stars for directories":           {"**/", []string{"a/", "a/b"}, []string{"a"}},
		"two stars inside a name":             {"a**b", []string{"ab", "axxb"}, []string{"a", "xab"}},
		"two stars inside a name of a place":  {"d/a?**b", []string{"d/axb", "d/axxb"}, []string{"d/ax/b", "d/ab"}},
		"two stars behind a plain beginning":  {"d/a**/b", []string{"d/ab", "d/a/b", "d/ax/b", "d/ax/y/b"}, []string{"d/axb", "d/b", "ab"}},
		"two stars at the end of a beginning": {"d/a**", []string{"d/a", "d/ab", "d/a/b"}, []string{"d/b", "ab"}},
		"two stars behind a wild beginning":   {"d/?**", []string{"d/a", "d/ab"}, []string{"d/"}},
		"three stars":                         {"a/***/b", []string{"a/b", "a/x/y/b"}, []string{"ab"}},
		"two stars and a quoted slash":        {`**\/b`, []string{"a/b", "x/a/b"}, []string{"b"}},
		"a quoted slash":                      {`a\/b`, []string{"a/b"}, []string{`a\/b`, "x/a/b"}},
		"a quoted slash at the end":           {`a\/`, nil, []string{"a/", `a\/`, "a"}},
		"quoted specials":                     {`\*\?\[\]\\\a`, []string{`*?[]\a`}, []string{`\*\?\[\]\\\a`}},
		"a backslash at the end":              {"a\\\n!\\", nil, []string{"a", `a\`, `\`}},
		"brackets":                            {"[ab]x", []string{"ax", "bx"}, []string{"cx", "x", "abx"}},
		"brackets that negate":                {"[!ab]x\n[^cd]y", []string{"cx", "!x", "^x", "ay", "^y"}, []string{"ax", "cy", "x"}},
		"a bang that is a member":             {"[a!^]x", []string{"!x", "^x"}, []string{"bx"}},
		"two marks":                           {"[!!]x\n[^^]y", []string{"^x", "!y"}, []string{"!x", "^y"}},
		"a bracket first":                     {"[]a]x\n[!]a]y", []string{"]x", "ax", "by"}, []string{"bx", "]y", "ay"}},
		"ranges":                              {"[b-d]\n[1-35-7]", []string{"b", "c", "d", "2", "5"}, []string{"a", "e", "-", "4"}},
		"a range the wrong way":               {"[c-a]x", []string{"cx"}, []string{"ax", "bx", "-x"}},
		"a range behind a range":              {"[a-c-e]x", []string{"bx", "-x", "ex"}, []string{"dx"}},
		"a hyphen first and last":             {"[-a]x\n[b-]x", []string{"-x", "ax", "bx"}, []string{"cx"}},
		"a range to a quoted byte":            {`[\[-\]]x`, []string{"[x", `\x`, "]x"}, []string{"-x"}},
		"a range to a bracket":                {"[a-]]x", []string{"a]x", "-]x"}, []string{"ax", "]x"}},
		"a range from a class":                {"[[:digit:]-z]x", []string{"1x", "-x", "zx"}, []string{"ax"}},
		"a range of high bytes":               {"[\x80-\xff]x", []string{"\x80x", "\xe9x"}, []string{"ax", "\x7fx"}},
		"a quoted byte in brackets":           {`[\]\-\\]x`, []string{"]x", "-x", `\x`}, []string{"ax"}},
		"a slash in brackets":                 {"a[/]b\nc[!x]d\ne/f[!x]g", []string{"cyd", "e/fyg"}, []string{"a/b", "c/d", "e/f/g"}},
		"an unclosed bracket":                 {"a[\nb[c\nd[!\ne[]\nf[]x", nil, []string{"a[", "b[c", "bc", "d[!", "e[]", "f]", "e", "fx"}},
		"an unclosed bracket and a slash":     {"a[b/", nil, []string{"a[b/", "ab/"}},
		"an unclosed bracket behind a star":   {"*[\n!*[a", nil, []string{"[", "a", "[a"}},
		"a quoted end of brackets":            {`[a\]`, nil, []string{"a", "]", `[a\]`}},
		"an unknown class":                    {"[[:word:]]\n[[::]]", nil, []string{"w", ":", "[:word:]"}},
		"an unfinished class":                 {"[[:alpha]x\n[[:alpha:x", []string{"[x", ":x", "ax", "lx"}, []string{"bx"}},
		"an empty class":                      {"[[:]x", []string{"[x", ":x"}, []string{"ax"}},
		"a class in another case":             {"[[:ALPHA:]]", nil, []string{"a", "A"}},
		"a class that is no member":           {"[![:digit:]]x", []string{"ax"}, []string{"1x"}},
		"equivalence is no class":             {"[[=a=]]\n[[.b.]]", []string{"=]", "a]", "b]"}, []string{"a", "b"}},
		"a long name":                         {long, []string{long}, []string{long[1:]}},
		"names of git's own files":            {".gitignore\n!*", nil, []string{".gitignore", ".gitattributes"}},
		"pathspec magic":                      {":(top)x\n:/y", []string{":(top)x", ":/y"}, []string{"x", "y"}},
		"odd names":                           {"-rf\nnl*\n q'\"", []string{"-rf", "nl\nx", " q'\""}, []string{"rf"}},
		"Latin-1":                             {"caf\xe9\n[\xe8]", []string{"caf\xe9", "\xe8"}, []string{"caf\xc3\xa9"}},
	}
	repo := testRepository(t)
	git := repo.ask(t)
	defer git.close()
	number := 0
	for name, row := range rows {
		number++
		dir := "row" + strconv.Itoa(number)
		t.Run(name, func(t *testing.T) {
			mkdir(t, filepath.Join(repo.root, dir))
			write(t, filepath.Join(repo.root, dir, ".gitignore"), row.content)
			check := func(path string, want bool) {
				t.Helper()
				name, isDir := strings.CutSuffix(path, "/")
				dir := dir
				if isDir {
					// Apart, as another path can be a file of this name.
					dir += "-directories"
					mkdir(t, filepath.Join(repo.root, dir, path))
					write(t, filepath.Join(repo.root, dir, ".gitignore"), row.content)
				}
				agrees(t, repo, git, dir, name, isDir, want)
			}
			for _, path := range row.ignored {
				check(path, true)
			}
			for _, path := range row.kept {
				check(path, false)
			}
		})
	}
}

// agrees checks the verdict on dir/name against want and against git.
func agrees(t *testing.T, repo *repository, git *asked, dir, name string, isDir, want bool) {
	t.Helper()
	verdict, err := treeAt(repo.root, ignore.Patterns{}).Ignored(dir+"/"+name, isDir)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if got := verdict.Ignored(); got != want {
		t.Errorf("ignored of %q, directory %v: %v by %s", name, isDir, got, verdict)
	}
	if got, want := decisionOf(verdict), git.decides(t, dir+"/"+name); got != want {
		t.Errorf("%q, directory %v: decided by %s, git has %s", name, isDir, got, want)
	}
}

// git's classes are its own: no locale, no vertical tab among the spaces.
func TestClasses(t *testing.T) {
	repo := testRepository(t)
	git := repo.ask(t)
	defer git.close()
	for _, class := range []string{
		"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit",
	} {
		mkdir(t, filepath.Join(repo.root, class))
		content := "x[[:" + class + ":]]"
		write(t, filepath.Join(repo.root, class, ".gitignore"), content)
		level := ignore.Root(ignore.Patterns{}, ignore.Patterns{}).Enter(class, ignore.Parse([]byte(content)))
		for b := 1; b < 256; b++ {
			name := "x" + string([]byte{byte(b)})
			if b == '/' {
				continue
			}
			if got, want := decisionOf(level.Ignored(name, false)), git.decides(t, class+"/"+name); got != want {
				t.Errorf("%q in %s: decided by %s, git has %s", name, class, got, want)
			}
		}
	}
}
