package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilEnding is a context that ends with the first of the signals. A second one ends the
// process at once, with the code that a shell gives for it: the signal's own effect may be
// none, as that of SIGINT on what a script starts with &.
func untilEnding(endings ...os.Signal) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	received := make(chan os.Signal, 2)
	signal.Notify(received, endings...)
	go func() {
		<-received
		cancel()
		if second, isNumber := (<-received).(syscall.Signal); isNumber {
			os.Exit(exitSignal + int(second))
		}
	}()
	return ctx
}

// endings are the signals that ask for the end. Without a class there is none to be read
// again, and a terminal that closes means the end, unless whoever started the process has
// it outlive that (nohup).
func endings(o options) []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if o.class == "" && !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}
