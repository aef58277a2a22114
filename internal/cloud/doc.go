// Package cloud is the simulated cloud of a process: networks and the instances in them. It may import internal/machine and
// internal/fsutil.
//
// It promises:
//
//   - Networks are in the process only. No instance listens on a port of the host; what can reach an instance has to come
//     through Dial.
//   - The folder is the cloud: after a kill at any moment, Open finds every network and instance that an Ensure call has
//     returned, with its address and its disk, and starts the instances again. What a Delete call has returned for is gone.
//   - Ensure and Delete calls can be repeated.
//   - Close and DeleteInstance return when what they stop has ended.
//
// The folder has networks/ID.json, and instances/ID with instance.json (what was asked for, the address, the user data),
// machine (its disk and host key) and stopped, an empty file, if it was powered off from within.
package cloud
