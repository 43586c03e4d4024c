internal import CSodium
internal import CofferLibc

/// The memory of secret bytes: pages of libsodium that are locked, excluded from core dumps, and enclosed by guard
/// pages.
///
/// `sodium_malloc` costs several system calls and four of the about 65,000 memory mappings of a process
/// (`vm.max_map_count`). Blocks of up to 4096 bytes are therefore taken from slabs of 64 KiB. A slab consists of parts
/// of 4096 bytes, each with blocks of one size. An empty slab is freed if there is another empty one. Larger blocks are
/// allocated separately. Pages beyond `RLIMIT_MEMLOCK` are not locked and may be swapped; ``isLocked`` is then `false`.
/// If guarded memory is not available, the block is on the heap, and is still wiped. Thread-safe.
enum GuardedMemory {
  /// The allocator of a block.
  enum Origin {
    case slab(Slab, sizeClass: Int)
    case guarded
    case heap
  }

  private static let slabSize = 65_536
  private static let partSize = 4096
  private static let blockSizes = [64, 256, 1024, partSize]

  /// 64 KiB for blocks of several sizes.
  final class Slab: @unchecked Sendable {  // used only under the mutex
    fileprivate let start: UnsafeMutableRawPointer
    /// A list of free blocks for each of ``blockSizes``.
    private var free: [[UnsafeMutableRawPointer]] = []
    private var unusedParts: [UnsafeMutableRawPointer] = []
    fileprivate private(set) var blocksInUse = 0

    fileprivate init(_ start: UnsafeMutableRawPointer) {
      self.start = start
      makeAllFree()
    }

    private func makeAllFree() {
      free = .init(repeating: [], count: blockSizes.count)
      unusedParts = stride(from: 0, to: slabSize, by: partSize).map { start + $0 }
    }

    fileprivate func take(_ sizeClass: Int) -> UnsafeMutableRawPointer? {
      // An empty slab can hold blocks of every size again.
      if blocksInUse == 0 && free[sizeClass].isEmpty { makeAllFree() }
      if free[sizeClass].isEmpty, let part = unusedParts.popLast() {
        free[sizeClass] = stride(from: 0, to: partSize, by: blockSizes[sizeClass]).map { part + $0 }
      }
      guard let block = free[sizeClass].popLast() else { return nil }
      blocksInUse += 1
      return block
    }

    fileprivate func giveBack(_ block: UnsafeMutableRawPointer, _ sizeClass: Int) {
      free[sizeClass].append(block)
      blocksInUse -= 1
    }
  }

  struct Blocks {
    private(set) var slabs: [Slab] = []
    /// Whether a slab is empty. One is kept, so that the next block needs no system call.
    private var hasEmptySlab = false
    /// Whether all allocations so far are locked.
    var isLocked = true

    mutating func take(_ sizeClass: Int) -> (UnsafeMutableRawPointer, Slab)? {
      // The last slab nearly always has room.
      for slab in slabs.reversed() {
        guard let block = slab.take(sizeClass) else { continue }
        if slab.blocksInUse == 1 { hasEmptySlab = false }
        return (block, slab)
      }
      let (start, isLocked) = guarded(slabSize)
      if !isLocked { self.isLocked = false }
      guard let slab = start.map(Slab.init) else { return nil }
      slabs.append(slab)
      return slab.take(sizeClass).map { ($0, slab) }
    }

    mutating func giveBack(_ block: UnsafeMutableRawPointer, _ sizeClass: Int, to slab: Slab) {
      slab.giveBack(block, sizeClass)
      if slab.blocksInUse > 0 { return }
      if !hasEmptySlab { return hasEmptySlab = true }
      slabs.removeAll { $0 === slab }
      sodium_free(slab.start)
    }
  }

  /// With a pthread mutex, because the thread sanitizer does not support `Mutex`.
  private final class SharedBlocks: @unchecked Sendable {  // used only under the mutex
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var blocks = Blocks()

    init() { pthread_mutex_init(mutex, nil) }

    func withLock<R>(_ body: (inout Blocks) -> R) -> R {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return body(&blocks)
    }
  }
  private static let shared = SharedBlocks()

  /// Initialises libsodium, which must happen before any other call of it, on any thread.
  static let isReady: Bool = {
    guard sodium_init() >= 0 else { fatalError("libsodium could not be initialised: no randomness?") }
    return true
  }()

  static var isLocked: Bool { shared.withLock { $0.isLocked } }

  /// Returns a block of at least `count` bytes with undefined contents.
  static func allocate(_ count: Int) -> (UnsafeMutableRawPointer, Origin) {
    _ = isReady
    guard let sizeClass = blockSizes.firstIndex(where: { $0 >= count }) else {
      let (block, isLocked) = guarded(count)
      if !isLocked { shared.withLock { $0.isLocked = false } }
      if let block { return (block, .guarded) }
      return (heapBlock(count), .heap)
    }
    if let (block, slab) = shared.withLock({ $0.take(sizeClass) }) { return (block, .slab(slab, sizeClass: sizeClass)) }
    return (heapBlock(count), .heap)
  }

  /// Wipes the block's `count` bytes and frees it.
  static func deallocate(_ block: UnsafeMutableRawPointer, count: Int, origin: Origin) {
    sodium_memzero(block, count)
    switch origin {
    case .slab(let slab, let sizeClass): shared.withLock { $0.giveBack(block, sizeClass, to: slab) }
    case .guarded: sodium_free(block)
    case .heap: CofferLibc.free(block)
    }
  }

  /// Returns guarded memory, or `nil` if it is not available, and whether it is locked. `sodium_malloc` does not report
  /// whether it could lock the memory; the second `mlock` does, and has no other effect.
  private static func guarded(_ count: Int) -> (block: UnsafeMutableRawPointer?, isLocked: Bool) {
    guard let block = sodium_malloc(count) else { return (nil, false) }
    return (block, mlock(block, count) == 0)
  }

  private static func heapBlock(_ count: Int) -> UnsafeMutableRawPointer {
    guard let block = malloc(max(count, 1)) else { fatalError("out of memory") }
    return block
  }
}
