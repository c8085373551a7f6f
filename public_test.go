package teamctl_test

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// public are the packages that other programs write against. Their exported
// declarations name types of the standard library and of each other, so that
// their go doc is enough.
var public = []string{module, module + "/team", module + "/ledger", module + "/tool"}

// TestPublicSignatures: an exported declaration of a public package names no
// type of a room that is not public.
func TestPublicSignatures(t *testing.T) {
	t.Parallel()
	load := exports(t, public)
	for _, path := range public {
		pkg, err := load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range foreign(pkg, func(of *types.Package) bool {
			return !strings.HasPrefix(of.Path(), module) || slices.Contains(public, of.Path())
		}) {
			t.Errorf("%s: %s", strings.TrimPrefix(path, module), v)
		}
	}
}

// TestForeign: a signature that shows a type of another room is found.
func TestForeign(t *testing.T) {
	t.Parallel()
	box := module + "/inbox"
	pkg, err := exports(t, []string{box})(box)
	if err != nil {
		t.Fatal(err)
	}
	got := foreign(pkg, func(of *types.Package) bool { return of.Path() == box || !strings.HasPrefix(of.Path(), module) })
	if want := "WatchBy shows team.Watcher"; !slices.Contains(got, want) {
		t.Errorf("no %q in %q", want, got)
	}
}

// exports returns a loader of compiled packages.
func exports(t *testing.T, paths []string) func(string) (*types.Package, error) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		files[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		text, err := os.ReadFile(files[path])
		return io.NopCloser(bytes.NewReader(text)), err
	})
	return imp.Import
}

// foreign lists the types that the exported declarations of a package name,
// where allowed refuses their package.
func foreign(pkg *types.Package, allowed func(*types.Package) bool) (list []string) {
	seen := map[types.Type]bool{}
	var at string // the declaration
	var walk func(types.Type)
	named := func(o *types.TypeName, t types.Type) bool {
		if o.Pkg() != nil && !allowed(o.Pkg()) {
			list = append(list, fmt.Sprintf("%s shows %s.%s", at, strings.TrimPrefix(o.Pkg().Path(), module+"/"), o.Name()))
			return false
		}
		return o.Pkg() == pkg && !seen[t]
	}
	walk = func(t types.Type) {
		switch t := t.(type) {
		case *types.Alias:
			if named(t.Obj(), t) {
				seen[t] = true
				walk(t.Rhs())
			}
		case *types.Named:
			for a := range t.TypeArgs().Types() {
				walk(a)
			}
			if !named(t.Obj(), t) {
				return
			}
			seen[t] = true
			outer := at
			at = t.Obj().Name()
			walk(t.Underlying())
			for m := range t.Methods() {
				if m.Exported() {
					at = t.Obj().Name() + "." + m.Name()
					walk(m.Type())
				}
			}
			at = outer
		case *types.Struct:
			outer := at
			for f := range t.Fields() {
				if f.Exported() || f.Embedded() {
					at = outer + "." + f.Name()
					walk(f.Type())
				}
			}
			at = outer
		case *types.Interface:
			outer := at
			for m := range t.Methods() {
				if m.Exported() {
					at = outer + "." + m.Name()
					walk(m.Type())
				}
			}
			at = outer
		case *types.Signature:
			for v := range t.Params().Variables() {
				walk(v.Type())
			}
			for v := range t.Results().Variables() {
				walk(v.Type())
			}
		case *types.Pointer:
			walk(t.Elem())
		case *types.Slice:
			walk(t.Elem())
		case *types.Array:
			walk(t.Elem())
		case *types.Chan:
			walk(t.Elem())
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		}
	}
	for _, name := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(name); o.Exported() {
			at = name
			walk(o.Type())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
