import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Runs a main class of Hive within a URLClassLoader, as Hive 3 expects of the loader of its threads. */
public class Launcher {
  /** arguments: the class path, parts divided by ':'; the main class; its own arguments. */
  public static void main(String[] arguments) throws Exception {
    List<URL> urls = new ArrayList<>();
    for (String part : arguments[0].split(":")) {
      urls.add(Paths.get(part).toUri().toURL());
    }
    ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    String[] rest = Arrays.copyOfRange(arguments, 2, arguments.length);
    loader.loadClass(arguments[1]).getMethod("main", String[].class).invoke(null, (Object) rest);
  }
}
