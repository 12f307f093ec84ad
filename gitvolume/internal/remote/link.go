package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connectTimeout bounds one address, so that a host whose first address is dead is
	// still reached by its second.
	connectTimeout = 15 * time.Second
	resolveTimeout = 20 * time.Second
)

// errNotPermitted is what a Permit said.
var errNotPermitted = errors.New("the address may not be connected to")

// link makes the connections of one run and keeps what became of them.
type link struct {
	permit  Permit
	done    context.Context // It ends with the run, and dials for whoever asks.
	end     context.CancelFunc
	workers sync.WaitGroup
	// moved is when the last byte was carried, or the run gave another sign of life, in
	// nanoseconds since the link was made: the time of day may be set meanwhile.
	moved atomic.Int64
	made  time.Time
	// acted is moved without what the remote sends to keep a connection alive, and sentBefore
	// how much had been sent then.
	acted, sentBefore atomic.Int64
	received          atomic.Int64
	sent              atomic.Int64
	// last is the size of what was sent last, and answered of what came since.
	last, answered atomic.Int64

	mu    sync.Mutex
	facts facts
	conns map[io.Closer]bool
	ended bool
}

func newLink(permit Permit) *link {
	l := &link{permit: permit, conns: map[io.Closer]bool{}, facts: facts{sshStatus: -1}, made: time.Now()}
	l.done, l.end = context.WithCancel(context.Background())
	l.alive()
	return l
}

// close ends every connection and listener and waits for all that served them.
func (l *link) close() {
	l.end()
	l.mu.Lock()
	l.ended = true
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.workers.Wait()
}

// keep has close end the connection or listener too; false when it already ran.
func (l *link) keep(c io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *link) drop(c io.Closer) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *link) alive() {
	l.heard()
	l.acted.Store(l.moved.Load())
}

// heard is alive for what may be no more than a sign of life.
func (l *link) heard() { l.moved.Store(int64(time.Since(l.made))) }

// silence is how long nothing moved.
func (l *link) silence() time.Duration { return time.Since(l.made) - time.Duration(l.moved.Load()) }

// idleness is how long there were no more than signs of life.
func (l *link) idleness() time.Duration { return time.Since(l.made) - time.Duration(l.acted.Load()) }

// signsOfLife is more bytes than a client of ssh sends in some minutes to answer a server
// that asks whether it is still there.
const signsOfLife = 4096

// countSent counts what was sent, and whether it was worth to be called an act.
func (l *link) countSent(n int64) {
	l.heard()
	if sent := l.sent.Add(n); sent-l.sentBefore.Load() >= signsOfLife {
		l.sentBefore.Store(sent)
		l.alive()
	}
}

// learned is what the link knows so far.
func (l *link) learned() facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.facts
	f.received = l.received.Load()
	return f
}

func (l *link) note(change func(*facts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.facts)
}

// dial connects to the first address of the host that may be connected to and answers.
// The number is the connection's.
func (l *link) dial(host, port string) (server net.Conn, number int, err error) {
	l.alive()
	conn, err := l.connect(host, port)
	l.note(func(f *facts) {
		f.dials++
		number = f.dials
		switch {
		case err == nil:
			f.connected++
			f.serverEnded = false
		case errors.Is(err, errNotPermitted):
			f.refused = err
		default:
			f.unreached = err
		}
	})
	l.alive()
	return conn, number, err
}

func (l *link) connect(host, port string) (net.Conn, error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is no port: %w", port, err)
	}
	ctx, cancel := context.WithTimeout(l.done, resolveTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolve the remote's host: %w", unresolved(host, err))
	}
	return l.first(host, addresses, uint16(number))
}

// first connects to the first of the addresses that may be connected to and answers. It
// is errNotPermitted if none of them may be; else what is wrong is that none answers.
func (l *link) first(host string, addresses []netip.Addr, port uint16) (net.Conn, error) {
	refused, unreached := map[netip.AddrPort]error{}, map[netip.AddrPort]error{}
	for _, address := range addresses {
		target := netip.AddrPortFrom(address.Unmap(), port)
		if l.permit != nil {
			if err := l.permit(host, target); err != nil {
				refused[target] = fmt.Errorf("connect to %s: %w: %w", target, errNotPermitted, err)
				continue
			}
		}
		dialer := net.Dialer{Timeout: connectTimeout}
		conn, err := dialer.DialContext(l.done, "tcp", target.String())
		if err == nil {
			return conn, nil
		}
		unreached[target] = err
	}
	return nil, cmp.Or(byAddress(unreached), byAddress(refused))
}

// byAddress joins what became of the addresses, in their own order: resolvers give the
// addresses of a name in another one each time. It is nil of none.
func byAddress(became map[netip.AddrPort]error) error {
	var all []error
	for _, address := range slices.SortedFunc(maps.Keys(became), netip.AddrPort.Compare) {
		all = append(all, became[address])
	}
	return errors.Join(all...)
}

// splice carries bytes both ways until both sides have ended.
func (l *link) splice(client, server net.Conn, number int) {
	defer l.drop(client)
	defer l.drop(server)
	if !l.keep(client) || !l.keep(server) {
		return
	}
	var first sync.Once
	var both sync.WaitGroup
	both.Go(func() {
		broke, _ := l.carry(client, server, &l.received)
		// One that ends after what the client said last was told to: ssh and TLS say
		// goodbye. A connection that breaks nobody ended.
		first.Do(func() { l.serverEnded(number, broke != nil || !l.partedFirst()) })
		endWriting(client)
	})
	both.Go(func() {
		_, broke := l.carry(server, client, &l.sent)
		first.Do(func() { l.serverEnded(number, broke != nil) })
		endWriting(server)
	})
	both.Wait()
}

// serverEnded notes of the last connection whether the remote ended first, unasked.
func (l *link) serverEnded(number int, ended bool) {
	l.note(func(f *facts) { f.serverEnded = f.serverEnded || ended && number == f.dials })
}

// farewell is more than the records in which TLS and ssh say that they end, and less
// than any request of HTTP.
const farewell = 100

// longestGreeting is what a client of ssh may say before there is anything to end, which
// is as short as a goodbye (RFC 4253, 4.2). A handshake of TLS or ssh begins with more.
const longestGreeting = 255

// partedFirst tells whether a remote that ended was told to by the client's last words.
func (l *link) partedFirst() bool {
	return l.sent.Load() > longestGreeting && l.last.Load() < farewell && l.answered.Load() < farewell
}

// carry copies until the source ends or either side fails, and says which did.
func (l *link) carry(to io.Writer, from io.Reader, count *atomic.Int64) (source, destination error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if count == &l.sent {
				l.countSent(int64(n))
				l.last.Store(int64(n))
				l.answered.Store(0)
			} else {
				count.Add(int64(n))
				l.answered.Add(int64(n))
				l.heard()
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
	}
}

// endWriting tells the other side that no more comes; it may still have to say
// something.
func endWriting(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
