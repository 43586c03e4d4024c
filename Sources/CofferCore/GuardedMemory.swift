internal import CSodium
internal import Glibc

/// Where secret bytes live: pages that are locked into memory, left out of core dumps and set between
/// guard pages, all by libsodium.
///
/// `sodium_malloc` costs several system calls and four memory mappings, of which a process has about
/// 65,000 in all (`vm.max_map_count`). Blocks of up to 4096 bytes are therefore cut from 64 KiB slabs, and
/// only larger ones get an allocation of their own. Locking is best effort, as it is in libsodium: beyond
/// `RLIMIT_MEMLOCK` a page may be swapped, and ``isLocked`` says so. Where guarded memory cannot be had at all,
/// the block comes from the heap and is still wiped. Thread-safe.
enum GuardedMemory {
  /// Where a block came from, and so how it goes back.
  enum Origin {
    case slab(sizeClass: Int)
    case guarded
    case heap
  }

  private static let slabSize = 65_536
  private static let blockSizes = [64, 256, 1024, 4096]

  private struct Blocks {
    /// The free blocks, a list for each of ``blockSizes``. A slab is kept once it is made.
    var free: [[UnsafeMutableRawPointer]] = .init(repeating: [], count: blockSizes.count)
    /// Whether each allocation until now is locked.
    var isLocked = true
  }

  /// Behind a pthread mutex, because the thread sanitizer does not know the one of Synchronization.
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

  /// libsodium must be initialised before any other call of it, from whichever thread comes first.
  static let isReady: Bool = {
    guard sodium_init() >= 0 else { fatalError("libsodium could not be initialised: no randomness?") }
    return true
  }()

  /// Whether all memory that was given out until now is locked.
  static var isLocked: Bool { shared.withLock { $0.isLocked } }

  /// A block of at least `count` bytes, with whatever content.
  static func allocate(_ count: Int) -> (UnsafeMutableRawPointer, Origin) {
    _ = isReady
    guard let sizeClass = blockSizes.firstIndex(where: { $0 >= count }) else {
      let (block, isLocked) = guarded(count)
      if !isLocked { shared.withLock { $0.isLocked = false } }
      if let block { return (block, .guarded) }
      return (heapBlock(count), .heap)
    }
    let block: UnsafeMutableRawPointer? = shared.withLock { blocks in
      if blocks.free[sizeClass].isEmpty {
        let (slab, isLocked) = guarded(slabSize)
        if !isLocked { blocks.isLocked = false }
        if let slab {
          for offset in stride(from: 0, to: slabSize, by: blockSizes[sizeClass]) {
            blocks.free[sizeClass].append(slab + offset)
          }
        }
      }
      return blocks.free[sizeClass].popLast()
    }
    if let block { return (block, .slab(sizeClass: sizeClass)) }
    return (heapBlock(count), .heap)
  }

  /// Wipes the block's `count` bytes and gives it back.
  static func deallocate(_ block: UnsafeMutableRawPointer, count: Int, origin: Origin) {
    sodium_memzero(block, count)
    switch origin {
    case .slab(let sizeClass): shared.withLock { $0.free[sizeClass].append(block) }
    case .guarded: sodium_free(block)
    case .heap: Glibc.free(block)
    }
  }

  /// Guarded memory, if there is any, and whether it is locked. `sodium_malloc` has tried to lock it and does not
  /// say: asking once more changes nothing, and tells.
  private static func guarded(_ count: Int) -> (block: UnsafeMutableRawPointer?, isLocked: Bool) {
    guard let block = sodium_malloc(count) else { return (nil, false) }
    return (block, mlock(block, count) == 0)
  }

  private static func heapBlock(_ count: Int) -> UnsafeMutableRawPointer {
    guard let block = malloc(max(count, 1)) else { fatalError("out of memory") }
    return block
  }
}
