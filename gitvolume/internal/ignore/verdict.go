package ignore

import "fmt"

// Verdict is what the patterns say about an untracked path, and which of them said
// it. The zero value is that no pattern matches.
type Verdict struct {
	rule *rule
	base *Level
}

// Ignored tells whether git would leave the path out.
func (v Verdict) Ignored() bool { return v.rule != nil && !v.rule.negated }

// Pattern is the pattern that decided, as written: with its "!", without blanks at
// its end. It is empty if none matched. Any byte can be in it.
func (v Verdict) Pattern() string {
	if v.rule == nil {
		return ""
	}
	return v.rule.text
}

// Line is where the pattern stands in its file or list, from 1; 0 if none matched.
func (v Verdict) Line() int {
	if v.rule == nil {
		return 0
	}
	return v.rule.line
}

// File is the path from the root of the .gitignore that holds the pattern. It is
// empty for the class's list, and if no pattern matched.
func (v Verdict) File() string {
	if v.base == nil {
		return ""
	}
	return v.base.path() + ".gitignore"
}

// String names the pattern for a person, in printable bytes.
func (v Verdict) String() string {
	switch {
	case v.rule == nil:
		return "no pattern"
	case v.base == nil:
		return fmt.Sprintf("pattern %d of the class, %q", v.Line(), v.Pattern())
	}
	return fmt.Sprintf("line %d of %q, %q", v.Line(), v.File(), v.Pattern())
}
