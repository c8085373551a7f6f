package teamctl_test

import (
	"strings"
	"testing"
)

// TestPackageComments: every package says once what it is, so that go doc shows
// one text and nobody has to choose which of two to trust.
func TestPackageComments(t *testing.T) {
	type pkg struct{ name, dir string }
	in := map[pkg][]string{} // the files with a package comment
	for _, f := range goFiles(t) {
		if f.test {
			if f.doc != "" {
				t.Errorf("%s: a test file has a package comment: %.60q", f.path, f.doc)
			}
			continue
		}
		p := pkg{f.pkg, f.dir}
		if _, ok := in[p]; !ok {
			in[p] = nil
		}
		if f.doc == "" {
			continue
		}
		in[p] = append(in[p], f.path)
		want := "Package " + f.pkg + " "
		if f.pkg == "main" {
			continue
		}
		if !strings.HasPrefix(f.doc, want) {
			t.Errorf("%s: the package comment starts with %.30q, want %q", f.path, f.doc, want)
		}
	}
	for p, files := range in {
		if len(files) != 1 {
			t.Errorf("package %s in %s has %d package comments %v, want one", p.name, p.dir, len(files), files)
		}
	}
}
