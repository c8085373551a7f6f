package webtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Module returns the script of an npm package, or skips the test. The environment variable env names
// it; otherwise file is looked for in the global node_modules. Tests fetch nothing.
func Module(t testing.TB, env, file string) string {
	t.Helper()
	if path := os.Getenv(env); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%s: %v", env, err)
		}
		return string(data)
	}
	for _, dir := range globalModules() {
		if data, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			return string(data)
		}
	}
	name, _, _ := strings.Cut(file, "/")
	t.Skipf("no %s: %s does not name one, and the global node_modules has none", name, env)
	return ""
}

// globalModules are the directories into which npm installs with -g.
func globalModules() []string {
	dirs := filepath.SplitList(os.Getenv("NODE_PATH"))
	if node, err := exec.LookPath("node"); err == nil {
		for _, path := range []string{node, realPath(node)} {
			dirs = append(dirs, filepath.Join(filepath.Dir(path), "..", "lib", "node_modules"))
		}
	}
	return append(dirs, "/usr/local/lib/node_modules")
}

func realPath(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

// Inject runs a script in the document by the debugging protocol, which the document's policy does not
// concern.
func (t *Tab) Inject(name, script string) {
	t.Helper()
	run(t, "run "+name, chromedp.Evaluate[bool](script+"\n;true"))
}

// Theme makes the tab prefer a color scheme, light or dark.
func (t *Tab) Theme(scheme string) {
	t.Helper()
	do(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}
