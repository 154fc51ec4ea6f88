import java.nio.charset.StandardCharsets;

/** Labels one sequence, as tag.c does; tag_java.c has the native methods. */
public class Tag {
    static {
        System.loadLibrary("kcrf_java");
    }

    static native long open(String path);

    static native int columns(long model);

    /** Return the labels of cells [positions * columns], each in UTF-8. */
    static native String[] labels(long model, byte[][] cells);

    public static void main(String[] arguments) {
        long model = open(arguments[0]);
        int columns = columns(model);
        byte[][] cells = new byte[(arguments.length - 1) * columns][];
        for (int t = 1; t < arguments.length; t++) {
            String[] values = arguments[t].split("/", -1);
            for (int c = 0; c < columns; c++)
                cells[(t - 1) * columns + c] = (c < values.length ? values[c] : "").getBytes(StandardCharsets.UTF_8);
        }
        for (String label : labels(model, cells))
            System.out.println(label);
    }
}
