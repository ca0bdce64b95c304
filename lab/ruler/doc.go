// Package ruler is the process that measures. The same static program is the first process of every guest. It takes orders over a
// stream, and only it times the work: monotonic time from just before the process is created until it is reaped (design, section
// 3). Client is the host's end of the stream, Serve the guest's.
//
// The protocol is framed, versioned and bounded. The host does not trust a guest: whatever bytes arrive, Client answers with an
// error, never with a crash or an endless wait.
package ruler
