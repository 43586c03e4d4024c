internal import CofferLibc

/// Threads for calls that block, apart from the threads that run tasks.
///
/// Swift's tasks and Dispatch share one small pool of threads on Linux. A call that blocks one of them keeps other
/// tasks from running. The threads here are started on demand, and end when they have been idle for a while. Of the
/// jobs for one object, such as a backend, a limited number runs at a time, so that a slow backend delays no other; the
/// rest wait in the order of their submission. A job must not wait for a later job. Thread-safe.
package final class CallThreads: @unchecked Sendable {  // the state is used only under the mutex
  package typealias Job = @Sendable () -> Void

  /// The threads of the process: at most 64 for each object.
  package static let shared = CallThreads(limit: 64, idleTime: .seconds(10))

  private let limit: Int
  private let idleTime: Duration
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var jobs = Fifo<(object: ObjectIdentifier, job: Job)>()
  /// For each object, the jobs that run or wait for a thread, and those beyond the limit.
  private var objects: [ObjectIdentifier: (active: Int, waiting: Fifo<Job>)] = [:]
  private var threads = 0
  private var idleThreads = 0

  /// Creates threads on demand, at most `limit` for each object. A thread without a job ends after `idleTime`.
  package init(limit: Int, idleTime: Duration) {
    self.limit = limit
    self.idleTime = idleTime
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  package var threadCount: Int {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return threads
  }

  /// Runs `job` on one of the threads. Returns at once. `object` is what the job may have to wait for, or `nil`.
  package func submit(for object: AnyObject? = nil, _ job: @escaping Job) {
    pthread_mutex_lock(mutex)
    let object = ObjectIdentifier(object ?? self)
    var state = objects[object] ?? (0, Fifo())
    let mayRun = state.active < limit
    if mayRun {
      state.active += 1
      jobs.append((object, job))
    } else {
      state.waiting.append(job)
    }
    objects[object] = state
    let isThreadNeeded = mayRun && jobs.count > idleThreads
    if isThreadNeeded { threads += 1 } else { pthread_cond_signal(condition) }
    pthread_mutex_unlock(mutex)
    if isThreadNeeded && startThread({ self.work() }) != 0 {
      // The system has no thread left. The other threads do the job, or this one if there are none.
      pthread_mutex_lock(mutex)
      threads -= 1
      var stranded = threads == 0 ? jobs.popFirst() : nil
      pthread_mutex_unlock(mutex)
      while let (object, job) = stranded {
        job()
        stranded = nil
        pthread_mutex_lock(mutex)
        finish(object)
        if threads == 0 { stranded = jobs.popFirst() }
        pthread_mutex_unlock(mutex)
      }
    }
  }

  /// Runs `body` on one of the threads while the task is suspended. Cancelling the task does not end the call.
  package func run<R: Sendable>(for object: AnyObject? = nil, _ body: @escaping @Sendable () -> R) async -> R {
    // The thread sanitizer cannot follow a checked continuation. This one is resumed once.
    await withUnsafeContinuation { continuation in
      submit(for: object) { continuation.resume(returning: body()) }
    }
  }

  private func work() {
    var last: ObjectIdentifier?
    while let (object, job) = nextJob(after: last) {
      job()
      last = object
    }
  }

  /// Lets the next job for `object` run, after one has ended. Call it with the mutex locked.
  private func finish(_ object: ObjectIdentifier) {
    guard var state = objects[object] else { return }
    if let next = state.waiting.popFirst() { jobs.append((object, next)) } else { state.active -= 1 }
    objects[object] = state.active == 0 ? nil : state
  }

  /// Waits for a job, after one for `last` has ended. Returns `nil`, so that the thread ends, if no job comes within
  /// the idle time.
  private func nextJob(after last: ObjectIdentifier?) -> (object: ObjectIdentifier, job: Job)? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if let last { finish(last) }
    var deadline = timespec(after: idleTime)
    while true {
      if let job = jobs.popFirst() { return job }
      idleThreads += 1
      let result = pthread_cond_timedwait(condition, mutex, &deadline)
      idleThreads -= 1
      if result != 0 && jobs.isEmpty {
        threads -= 1
        return nil
      }
    }
  }
}
