package teamctl_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sameLines is how many lines of code in a row may not appear in two places: a block of
// that length that is mended in one place and forgotten in the other is a bug to come.
const sameLines = 12

// codeLine is a line that counts: no blank line, comment, import or lone punctuation.
type codeLine struct {
	text string
	no   int // in its file
}

// TestEveryBlockIsWrittenOnce compares all code and all scripts, tests included.
// Migrations are left out, since what has run on somebody's ledger cannot change.
func TestEveryBlockIsWrittenOnce(t *testing.T) {
	type place struct {
		path string
		at   int // in the file's code lines
	}
	lines := map[string][]codeLine{}
	ids := map[string]uint32{} // of the different lines
	seen := map[[sameLines]uint32]place{}
	known := map[[2]string]bool{}
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "migrations" || path == "bin") {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		ext := filepath.Ext(path)
		if ext != ".go" && ext != ".sh" && (ext != "" && ext != ".d" || !strings.HasPrefix(path, "scripts/")) {
			return nil
		}
		data, err := fs.ReadFile(root, path)
		if err != nil || bytes.HasPrefix(data, []byte("// Code generated ")) {
			return err
		}
		code := codeLines(string(data))
		lines[path] = code
		for i := 0; i+sameLines <= len(code); i++ {
			var block [sameLines]uint32
			for j, l := range code[i : i+sameLines] {
				if ids[l.text] == 0 {
					ids[l.text] = uint32(len(ids) + 1)
				}
				block[j] = ids[l.text]
			}
			first, again := seen[block]
			switch {
			case !again:
				seen[block] = place{path, i}
			case first.path == path && i < first.at+sameLines:
				// A block that overlaps itself is a table.
			case !known[[2]string{first.path, path}]:
				known[[2]string{first.path, path}] = true // one report for two files
				n := sameLines
				for b := lines[first.path]; i+n < len(code) && first.at+n < len(b) && code[i+n].text == b[first.at+n].text; {
					n++
				}
				t.Errorf("%s:%d and %s:%d have the same %d lines of code: keep one of them", first.path, lines[first.path][first.at].no, path, code[i].no, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 1000 {
		t.Errorf("only %d files were read", len(lines))
	}
}

// codeLines returns the lines of a file that count, without the white space around them.
func codeLines(text string) []codeLine {
	var out []codeLine
	imports, comment := false, false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case comment || strings.HasPrefix(line, "/*"):
			comment = !strings.Contains(line, "*/")
		case imports:
			imports = line != ")"
		case line == "import (":
			imports = true
		case strings.HasPrefix(line, "import "), strings.HasPrefix(line, "//"), strings.HasPrefix(line, "#"):
		case strings.Trim(line, "(){}[],;") == "":
		default:
			out = append(out, codeLine{line, i + 1})
		}
	}
	return out
}

func TestCodeLines(t *testing.T) {
	got := codeLines("package x\n\nimport (\n\t\"os\"\n)\n// why\nfunc f() {\n\tg(1)\n})\n/* a\nb */\n# shell\n\tlast")
	if want := "[{package x 1} {func f() { 7} {g(1) 8} {last 13}]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
