"""Names that everybody knows who knows a language of the JVM."""

_NAMES = """
AbstractMethodError Appendable ArithmeticException ArrayIndexOutOfBoundsException ArrayStoreException
AssertionError AutoCloseable Boolean Byte CharSequence Character Class ClassCastException ClassLoader
ClassNotFoundException CloneNotSupportedException Cloneable Comparable Deprecated Double Enum Error Exception
ExceptionInInitializerError Float FunctionalInterface IllegalAccessException IllegalArgumentException
IllegalMonitorStateException IllegalStateException IndexOutOfBoundsException InheritableThreadLocal
InstantiationException Integer InternalError InterruptedException Iterable LinkageError Long Math Module
NegativeArraySizeException NoClassDefFoundError NoSuchFieldException NoSuchMethodException
NullPointerException Number NumberFormatException Object OutOfMemoryError Override Package Process
ProcessBuilder ProcessHandle Readable Record ReflectiveOperationException Runnable Runtime RuntimeException
SafeVarargs SecurityException Short StackOverflowError StackTraceElement StackWalker StrictMath String
StringBuffer StringBuilder StringIndexOutOfBoundsException SuppressWarnings System Thread ThreadDeath
ThreadGroup ThreadLocal Throwable UnsatisfiedLinkError UnsupportedOperationException VerifyError
VirtualMachineError Void close compareTo equals getClass getMessage hashCode iterator length toString valueOf
"""
JVM_ROOTS = frozenset({"java", "javax", "kotlin", "scala", "groovy"})
"""First names of the packages of the libraries, from which files import."""
JVM_NAMES = frozenset(_NAMES.split()) | JVM_ROOTS
"""Names of ``java.lang``, which no file imports, and of methods that everything there has."""
