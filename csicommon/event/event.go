// Package event posts core/v1 Events about what a driver does to a pod, a claim
// or a volume.
//
// A repeat within ten minutes of the last occurrence counts up the Event that is
// there, also after a restart; later it is a new Event. Messages are stable,
// valid UTF-8 and bounded.
//
// The package must never make its caller wait for the API server, never lose
// more than the Event that failed, and never decide what is worth an Event.
package event

import "log/slog"

// Type is the type of an Event.
type Type string

// The two types that Kubernetes knows.
const (
	Normal  Type = "Normal"
	Warning Type = "Warning"
)

// Object is what an Event is about.
type Object struct {
	Kind string
	// APIVersion is "v1" when empty.
	APIVersion string
	// Namespace is empty for an object of the cluster; its Events are in "default".
	Namespace string
	Name      string
	UID       string
}

// Pod names a pod.
func Pod(namespace, name, uid string) Object {
	return Object{Kind: "Pod", APIVersion: "v1", Namespace: namespace, Name: name, UID: uid}
}

// Claim names a PersistentVolumeClaim.
func Claim(namespace, name, uid string) Object {
	return Object{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: name, UID: uid}
}

// Volume names a PersistentVolume.
func Volume(name, uid string) Object {
	return Object{Kind: "PersistentVolume", APIVersion: "v1", Name: name, UID: uid}
}

// attribute is how the log names o.
func (o Object) attribute() slog.Attr {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	switch o.Kind {
	case "Pod":
		return slog.String("pod", name)
	case "PersistentVolumeClaim":
		return slog.String("claim", name)
	case "PersistentVolume":
		return slog.String("volume", name)
	default:
		return slog.String("object", o.Kind+" "+name)
	}
}

// Recorder takes Events; Post returns at once. The message is made as Message
// makes it. It must say the same each time the same thing happens: one that
// holds a time, an attempt or a temporary name is a new Event each time.
type Recorder interface {
	Post(about Object, kind Type, reason, message string)
}

// Log is the Recorder of a driver without an API server: Events go to its log.
type Log struct {
	log *slog.Logger
}

// NewLog makes a Recorder that writes to log.
func NewLog(log *slog.Logger) *Log {
	return &Log{log: log}
}

// Post writes one line; a Warning has the level of one.
func (l *Log) Post(about Object, kind Type, reason, message string) {
	write := l.log.Info
	if kind == Warning {
		write = l.log.Warn
	}
	write("event", "reason", reason, "message", Message(message), about.attribute())
}
