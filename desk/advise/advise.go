// Package advise ranks what a study measured and says how to apply the best of it.
package advise
