// Command pause is the process that keeps a pod's namespaces: it waits to be told
// to stop.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	// As process 1 of a pod with a shared process namespace it inherits orphans,
	// which the kernel reaps when this signal is ignored.
	signal.Ignore(syscall.SIGCHLD)
	<-stop
}
