package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/teamctl/teamctl/agent/model"
)

// MaxLine is the maximum size of one line of a stream, and of an answer that is not streamed.
const MaxLine = 128 << 20

var bom = []byte("\uFEFF")

// Event is one server-sent event.
type Event struct {
	Name string // "" if the stream names none
	Data []byte // valid until the next event
}

// Stream is the body of an answer. It is not safe for concurrent use.
type Stream struct {
	Plain bool // the answer is one JSON document, not events

	e      Endpoint
	ctx    context.Context // the caller's
	inner  context.Context // of the request: ended by the silence timer
	cancel context.CancelCauseFunc
	clock  *time.Timer
	idle   time.Duration
	body   io.ReadCloser

	in    *bufio.Reader
	begun bool
	long  []byte   // a line longer than the buffer of in
	lines [][]byte // of a line split at CR
	data  []byte
	ended bool
}

// Close ends the request.
func (s *Stream) Close() {
	s.clock.Stop()
	s.cancel(context.Canceled)
	if s.body != nil {
		s.body.Close()
	}
}

// Read reads from the body. The silence timer runs only in here: a slow reader is no silence of
// the provider.
func (s *Stream) Read(p []byte) (int, error) {
	s.clock.Reset(s.idle)
	n, err := s.body.Read(p)
	s.clock.Stop()
	return n, err
}

// Whole reads an answer that is not streamed.
func (s *Stream) Whole() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(s, MaxLine+1))
	if err != nil {
		return nil, s.failed(err, model.Cut)
	}
	if len(b) > MaxLine {
		return nil, s.failed(fmt.Errorf("an answer of more than %d MB", MaxLine>>20), model.Refused)
	}
	if !json.Valid(b) {
		return nil, s.e.Cut("the answer is not valid JSON")
	}
	return b, nil
}

// Cut returns the error for a stream that ends before its answer does.
func (e Endpoint) Cut(why string) error {
	return &model.Error{Kind: model.Cut, Provider: e.Name, Text: why}
}

// Next returns the next event with data; io.EOF at the end of the body.
func (s *Stream) Next() (Event, error) {
	var ev Event
	some := false
	s.data = s.data[:0]
	for {
		line, err := s.line()
		if errors.Is(err, io.EOF) {
			s.ended = true
			if some && len(line) == 0 && json.Valid(s.data) { // no blank line after the last event
				ev.Data = s.data
				return ev, nil
			}
			return ev, io.EOF
		}
		if err != nil {
			return ev, err
		}
		if len(line) == 0 {
			if some {
				ev.Data = s.data
				return ev, nil
			}
			ev.Name = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":")) // a comment has no name
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			ev.Name = string(value)
		case "data":
			if some {
				s.data = append(s.data, '\n')
			}
			some = true
			s.data = append(s.data, value...)
		}
	}
}

// line returns the next line without its end. The end of the body also ends a line.
func (s *Stream) line() ([]byte, error) {
	if len(s.lines) > 0 {
		l := s.lines[0]
		s.lines = s.lines[1:]
		return l, nil
	}
	if s.ended {
		return nil, io.EOF
	}
	l, err := s.read()
	if err != nil && (!errors.Is(err, io.EOF) || len(l) == 0) {
		return nil, err
	}
	s.ended = errors.Is(err, io.EOF)
	if !s.begun {
		s.begun = true
		l = bytes.TrimPrefix(l, bom)
	}
	l = bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(l, '\r') < 0 {
		return l, nil
	}
	s.lines = bytes.Split(l, []byte("\r"))
	return s.line()
}

// read returns a line with its LF, valid until the next call.
func (s *Stream) read() ([]byte, error) {
	if s.in == nil {
		s.in = bufio.NewReaderSize(s, 32<<10)
	}
	l, err := s.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return l, s.readError(err)
	}
	s.long = append(s.long[:0], l...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(s.long) > MaxLine {
			return nil, s.failed(fmt.Errorf("a line of more than %d MB", MaxLine>>20), model.Refused)
		}
		l, err = s.in.ReadSlice('\n')
		s.long = append(s.long, l...)
	}
	return s.long, s.readError(err)
}

func (s *Stream) readError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s.failed(err, model.Cut)
}

// Ended converts io.EOF to the error for a stream that ended before its last event.
func (e Endpoint) Ended(err error, last string) error {
	if errors.Is(err, io.EOF) {
		return e.Cut("the stream ended without " + last)
	}
	return err
}
