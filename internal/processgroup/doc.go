// Package processgroup starts a command so that it and all processes that it starts can be stopped
// together. On Unix they are a process group. On Windows they are in a job object.
package processgroup
