package charts

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew: go test -count=1 ./charts -run Golden -update")

// What a change to a template does to the objects is read in the change of these
// files.
func TestGolden(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for name, values := range map[string]string{"default": "", "full": c.full(t)} {
			rendered := c.mustTemplate(t, values)
			golden := c.testdata(name + ".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(rendered), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if rendered != readFile(t, golden) {
				t.Errorf("what is rendered is not %s; if it is meant, run go test -count=1 ./charts -run Golden -update in hack, and look at the difference. Rendered:\n%s", golden, rendered)
			}
		}
	})
}

// Two renderings are one: an object that differs each time makes each upgrade
// restart every plugin.
func TestRenderingIsStable(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		values := c.full(t)
		if first, second := c.mustTemplate(t, values), c.mustTemplate(t, values); first != second {
			t.Errorf("rendered twice, it differs:\n%s\n----\n%s", first, second)
		}
	})
}
