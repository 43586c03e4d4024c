extension RandomAccessCollection where Index == Int {
  /// Returns the index of the first element that satisfies `predicate`, or the end, by binary search. The elements that
  /// satisfy `predicate` must be at the end.
  package func partitioningIndex(where predicate: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
