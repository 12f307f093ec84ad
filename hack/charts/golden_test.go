package charts

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew: go test -count=1 ./charts -run Golden -update")

// What a change to a template does to the objects is read in the change of these
// files.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"default": "", "full": full(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := mustTemplate(t, values)
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(rendered), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if rendered != readFile(t, golden) {
				t.Errorf("what is rendered is not %s; if it is meant, run go test -count=1 ./charts -run Golden -update in hack, and look at the difference. Rendered:\n%s", golden, rendered)
			}
		})
	}
}

// Two renderings are one: an object that differs each time makes each upgrade
// restart every plugin.
func TestRenderingIsStable(t *testing.T) {
	t.Parallel()
	values := full(t)
	if first, second := mustTemplate(t, values), mustTemplate(t, values); first != second {
		t.Errorf("rendered twice, it differs:\n%s\n----\n%s", first, second)
	}
}
