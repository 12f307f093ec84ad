package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/keyedmutex"
)

// Code says which gRPC code an error that wraps Err is answered with.
type Code struct {
	Err  error
	Code codes.Code
}

// ErrArgument is wrapped by errors about a request that no retry can make good.
var ErrArgument = errors.New("invalid argument")

// common are the errors that mean the same in every driver. ErrBusy stands
// before the contexts' own errors because it wraps one: a call that never got
// its turn is Aborted (CSI: an operation is pending for the volume), a call
// that ran out of time is not.
func common() []Code {
	return []Code{
		{ErrArgument, codes.InvalidArgument},
		{handle.ErrInvalid, codes.InvalidArgument},
		{keyedmutex.ErrBusy, codes.Aborted},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
	}
}

// toStatus gives err the code of the first row it matches, Internal when none
// does. An error that is a gRPC status already keeps its code.
func toStatus(table []Code, err error) error {
	if err == nil {
		return nil
	}
	for _, row := range table {
		if errors.Is(err, row.Err) {
			return status.Error(row.Code, err.Error())
		}
	}
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
