package bundle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

var update = flag.Bool("update", false, "write the golden file of a raised Version")

// TestVersion compares the fields of everything that is written for another
// process with those recorded for Version. A recorded version never changes:
// other fields are another version.
func TestVersion(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "protocol-"+Version+".txt")
	have := protocol()
	if _, err := os.Stat(golden); *update && os.IsNotExist(err) {
		if err := os.WriteFile(golden, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("version %s is not recorded (write it with -update): %v", Version, err)
	}
	if have != string(want) {
		t.Errorf("the protocol is not that of version %s: raise bundle.Version, then run this test with -update.\nnow:\n%s\nversion %s:\n%s", Version, have, Version, want)
	}
	all, err := filepath.Glob("testdata/protocol-*.txt")
	if err != nil || !slices.Equal(all, []string{golden}) {
		t.Errorf("recorded versions: %v, %v; want only %s", all, err, golden)
	}
}

// protocol lists the files with their fields, in the order in which a member's
// life writes them, then the datagrams and what a shim is called with.
func protocol() string {
	var b strings.Builder
	at := team.Bundle("")
	for _, f := range []struct {
		path    string
		content any
	}{
		{at.StartLock(), nil},
		{at.Launch(), backends.Launch{}},
		{at.Log(), nil},
		{at.Pane(), team.Pane{}},
		{at.RunLock(), nil},
		{at.Group(), Group{}},
		{at.Logger(), Logger{}},
		{at.Proc(), backends.Proc{}},
		{at.Ready(), readyWord{}},
		{at.Exit(), backends.Exit{}},
		{"datagram " + strings.Join([]string{EventUp, EventExited, EventReady, EventSeen}, "|"), Event{}},
		{"call shim [" + StepLog + "] --bundle --generation", nil},
		{"call " + StepHook + " CLI EVENT", nil},
	} {
		fmt.Fprintln(&b, f.path)
		if f.content != nil {
			fields(&b, reflect.TypeOf(f.content), "\t")
		}
	}
	return b.String()
}

// fields writes the JSON fields of a struct.
func fields(b *strings.Builder, t reflect.Type, indent string) {
	for i := range t.NumField() {
		f := t.Field(i)
		fmt.Fprintf(b, "%s%s %s\n", indent, f.Tag.Get("json"), f.Type.Kind())
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() != "time" {
			fields(b, f.Type, indent+"\t")
		}
	}
}
