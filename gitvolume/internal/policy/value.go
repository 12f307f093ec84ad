package policy

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"liken.sh/csicommon/quote"
)

func parseDuration(value string, least time.Duration) (time.Duration, string) {
	duration, err := time.ParseDuration(value)
	if err != nil || duration < least {
		return 0, fmt.Sprintf("is no duration of %s or more, as in 30s or 5m", least)
	}
	return duration, ""
}

func parseBool(value string) (bool, string) {
	switch value {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return false, "is neither true nor false"
}

// ParseSize reads a Kubernetes quantity of whole bytes, as in 1Mi or 500k. An error wraps
// ErrInvalid.
func ParseSize(text string) (int64, error) {
	size, rule := parseSize(text)
	if rule != "" {
		return 0, fmt.Errorf("%.60q %s: %w", text, rule, ErrInvalid)
	}
	return size, nil
}

// parseSize reads a Kubernetes quantity of whole bytes.
func parseSize(value string) (int64, string) {
	const rule = "is no whole number of bytes of 0 or more, as in 1Mi or 500k"
	// The parser works for minutes, and in as much memory, on a number like 1e999999999.
	const longestNumber, longestExponent = 40, 3
	if exponent := strings.LastIndexAny(value, "eE"); len(value) > longestNumber || exponent >= 0 && len(value)-exponent-1 > longestExponent {
		return 0, rule
	}
	quantity, err := resource.ParseQuantity(value)
	if err != nil || quantity.Sign() < 0 {
		return 0, rule
	}
	// Value rounds up and saturates.
	size := quantity.Value()
	if quantity.Cmp(*resource.NewQuantity(size, resource.DecimalSI)) != 0 {
		return 0, rule
	}
	return size, ""
}

// parseIgnore parts patterns at commas. Blanks around a pattern are not of it, but for
// one that a backslash holds at the end; a comma of a pattern is written "\,", which
// .gitignore reads as a comma. Empty patterns are none.
func parseIgnore(value string) ([]string, string) {
	if strings.ContainsAny(value, "\n\r\x00") {
		return nil, "has a line break or a NUL byte; patterns are parted by commas"
	}
	if !utf8.ValidString(value) {
		return nil, "is no UTF-8" // a record could not hold it
	}
	var patterns []string
	for _, part := range splitUnescaped(value) {
		pattern := strings.TrimLeft(part, " \t")
		kept := strings.TrimRight(pattern, " \t")
		if escaped(kept) && len(kept) < len(pattern) {
			kept = pattern[:len(kept)+1]
		}
		switch {
		case kept == "":
			continue
		case kept[0] == '#':
			return nil, fmt.Sprintf("has the pattern %s, which .gitignore takes for a comment; write \\#", quote.Value(kept))
		case escaped(kept):
			return nil, fmt.Sprintf("has the pattern %s, which ends with a backslash and matches nothing", quote.Value(kept))
		}
		patterns = append(patterns, kept)
	}
	return patterns, ""
}

// splitUnescaped parts at the commas that no backslash is before.
func splitUnescaped(value string) []string {
	var parts []string
	start := 0
	for i := range len(value) {
		if value[i] == ',' && !escaped(value[start:i]) {
			parts = append(parts, value[start:i])
			start = i + 1
		}
	}
	return append(parts, value[start:])
}

// escaped tells whether what follows the text has a backslash before it that counts.
func escaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}
