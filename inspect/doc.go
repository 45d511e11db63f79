// Package inspect looks at a namespace and changes nothing: Explain says why a task is where it
// is and what it waits for, Audit says where records and indexes disagree, and Export tells all
// that a namespace holds.
package inspect
