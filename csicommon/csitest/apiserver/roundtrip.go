package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// RoundTrip answers request by ServeHTTP in a goroutine of its own, so that a
// watch streams. It ends when the client closes the body or its context ends.
func (s *Server) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	reader, writer := io.Pipe()
	answer := &streamed{header: http.Header{}, started: make(chan struct{}), body: writer}
	failed := make(chan error, 1)
	incoming := request.Clone(ctx)
	if incoming.Body == nil {
		incoming.Body = http.NoBody
	}
	go func() {
		defer cancel()
		defer func() {
			if recover() != nil { // Cut
				failed <- errors.New("the connection was cut")
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			answer.WriteHeader(http.StatusOK)
			_ = writer.Close()
		}()
		s.ServeHTTP(answer, incoming)
	}()
	stop := context.AfterFunc(ctx, func() {
		if err := request.Context().Err(); err != nil {
			_ = writer.CloseWithError(err)
		}
	})
	select {
	case <-answer.started:
	case err := <-failed:
		stop()
		return nil, err
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	return &http.Response{
		StatusCode: answer.code, Status: http.StatusText(answer.code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: &body{ReadCloser: reader, cancel: cancel}, ContentLength: -1, Request: request,
	}, nil
}

// body ends the handler when the client closes it.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// streamed is the http.ResponseWriter whose body is a pipe.
type streamed struct {
	header  http.Header
	sent    http.Header
	code    int
	started chan struct{}
	once    sync.Once
	body    *io.PipeWriter
}

func (s *streamed) Header() http.Header { return s.header }

func (s *streamed) WriteHeader(code int) {
	s.once.Do(func() {
		s.code, s.sent = code, s.header.Clone()
		close(s.started)
	})
}

func (s *streamed) Write(data []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.body.Write(data)
}

// Flush has nothing to do: a pipe holds nothing back.
func (s *streamed) Flush() {}
