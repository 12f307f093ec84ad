package charts

import (
	"regexp"
	"strings"
	"testing"
)

// What a page offers to be asked of Prometheus is PromQL over series that there are.
func TestQueriesOfThePages(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		known := c.metrics(t)
		checked := 0
		for _, name := range []string{"reference/metrics.md", "runbooks.md"} {
			for _, block := range regexp.MustCompile("(?ms)^```promql\n(.*?)^```$").FindAllStringSubmatch(readFile(t, c.docs, name), -1) {
				for line := range strings.Lines(block[1]) {
					if strings.HasPrefix(line, "#") {
						continue
					}
					checked++
					if err := checkExpression(line, known); err != nil {
						t.Errorf("%s: %s: %v", name, line, err)
					}
				}
			}
		}
		if checked < 5 {
			t.Errorf("only %d queries were found", checked)
		}
	})
}
