// Command client is the workload of the targets hdfs and hdfs-ha.
//
// "work" is users and an administrator: users run commands of the file system
// shell (put, cat, checksum, mv, mkdir) in one long-running JVM (Shell.java),
// the administrator runs the tools of Hadoop, each in a JVM of its own, and
// stops and starts servers. "final" reads every file back after recovery.
// "fence" is the fencing method of the two NameNodes. "jar" packs Shell.java.
// Operations are printed as JSON lines (model.Operation).
package main
