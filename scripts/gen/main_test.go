package main

import (
	"io"
	"testing"
)

// The checked-in files are what the code says now.
func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()
	if err := run(true, io.Discard); err != nil {
		t.Error(err)
	}
}
