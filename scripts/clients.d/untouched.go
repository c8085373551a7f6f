package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// untouched compares the person's own configuration with its state before the first start. Claude
// Code keeps its state in one of the files and writes that itself: there, all previous values must
// remain, and nothing may be registered.
func untouched(_ context.Context, w *world, _ agentlab.Client) (string, error) {
	var errs []error
	for name, before := range w.Files {
		after, err := os.ReadFile(filepath.Join(w.User, name))
		switch {
		case err != nil:
			errs = append(errs, err)
		case bytes.Equal(after, []byte(before)):
		case name == ".claude.json":
			errs = append(errs, kept(before, after))
		default:
			errs = append(errs, fmt.Errorf("%s has changed:\n%s", name, after))
		}
	}
	return "", errors.Join(errs...)
}

// kept reports a difference between two JSON objects other than keys of the program's own state.
func kept(before string, after []byte) error {
	var was, is map[string]any
	if err := errors.Join(json.Unmarshal([]byte(before), &was), json.Unmarshal(after, &is)); err != nil {
		return err
	}
	for _, key := range []string{"mcpServers", "hooks", "permissions"} {
		if v, ok := is[key].(map[string]any); ok && len(v) > 0 {
			return fmt.Errorf("%s was registered: %v", key, v)
		}
	}
	return holds("", was, is)
}

func holds(path string, was, is any) error {
	a, ok := was.(map[string]any)
	b, both := is.(map[string]any)
	if !ok || !both {
		if reflect.DeepEqual(was, is) {
			return nil
		}
		return fmt.Errorf("%s was %v and is %v", path, was, is)
	}
	for key, v := range a {
		if err := holds(path+"/"+key, v, b[key]); err != nil {
			return err
		}
	}
	return nil
}
