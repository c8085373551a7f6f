package glob

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "[a]", "a*", "a?", `a\b`, `[\]]`} {
		dir := filepath.Join(t.TempDir(), name)
		want := filepath.Join(dir, "x.json")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(want, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := filepath.Glob(filepath.Join(Escape(dir), "*.json")); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
